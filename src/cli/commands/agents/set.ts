import { readSection } from "../../../cell/settings.ts";
import { type ConsentChange, changeConsent, readGranted } from "../../../pit/consent.ts";
import type { MissionRecord } from "../../../pit/record/record.ts";
import { PIT_SETTINGS } from "../../../pit/settings.ts";
import { findTemplateProblem, splitWords } from "../../../pit/start/resume-command.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { nearest } from "../../../platform/nearest.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import { readEnvFile } from "./agent-environment.ts";
import { openCliPitContext } from "./open-pit.ts";
import { refuseInsideLife } from "./refuse-inside-life.ts";

const RESUME = "resume_command";

export const command = defineCommand({
  about:
    "Changes what you granted a mission: any setting of the section pit (lazarus config lists them), the resume command, " +
    "and the environment of its next lives. It is stored outside the cell, and what the agent writes into its cell can " +
    "only narrow it. A revival that is due is decided again. Without changes, prints what is granted. Refused inside an " +
    "agent.",
  positionals: [
    MISSION_ARGUMENT,
    {
      name: "key=value",
      summary: "a setting, resume_command=COMMAND, or live off|SECONDS",
      looksLike: /=|^live$/,
      optional: true,
      variadic: true,
    },
  ],
  options: {
    unset: { type: "texts", value: "KEY", summary: "use the config's value again; may be repeated" },
    "env-file": { type: "text", value: "FILE", summary: "add or replace variables: lines of NAME=VALUE" },
  },
  examples: [
    ["lazarus set tidy-inbox", "show what is granted"],
    ["lazarus set tidy-inbox revive=yes max_revivals_per_hour=2", "revive it, at most twice an hour"],
    ["lazarus set tidy-inbox 'resume_command=claude --resume {session}'", "resume the conversation"],
    ["lazarus set tidy-inbox live 10", "save its changes within 10 seconds"],
    ["lazarus set tidy-inbox live off", "take no live points"],
    ["lazarus set tidy-inbox --env-file keys.env", "give its next life new keys"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const change = readChange(context, args["key=value"] ?? [], options.unset, options["env-file"]);
    using pitContext = openCliPitContext(context);
    let record: MissionRecord;
    if (change === undefined) record = readGranted(pitContext, mission);
    else {
      refuseInsideLife(context, "set");
      record = await changeConsent(pitContext, mission, change);
    }
    const granted = {
      ...record.settings,
      ...(record.revive === null ? {} : { revive: record.revive }),
      ...(record.stall_seconds === null ? {} : { stall_seconds: record.stall_seconds }),
    };
    const { command: start, resume_command, environment } = record;
    context.emit(
      "set/1",
      { mission_id: mission, command: start, resume_command, settings: granted, environment },
      () => describe({ command: start.length > 0 ? start : null, resume_command, ...granted }, environment),
    );
    if (change !== undefined)
      context.say(
        record.life === null
          ? "saved: the settings apply now"
          : `saved: the settings apply now, command and environment from the next life of ${mission}`,
      );
    return 0;
  },
});

const LIVE = "protect_within_seconds";

/** Undefined when nothing is to be changed. */
function readChange(
  context: CliContext,
  words: readonly string[],
  unset: readonly string[],
  envFile: string | undefined,
): ConsentChange | undefined {
  if (words.length === 0 && unset.length === 0 && envFile === undefined) return undefined;
  const values = new Map<string, unknown>(unset.map((key) => [requireKey(unsetKey(key)), undefined]));
  for (const word of joinLive(words)) {
    const at = word.indexOf("=");
    if (at < 0) throw usage("set", `unexpected argument ${JSON.stringify(word)}; expected KEY=VALUE`);
    const key = requireKey(word.slice(0, at));
    values.set(key, key === RESUME ? readTemplate(word.slice(at + 1)) : readValue(key, word.slice(at + 1)));
  }
  const { [RESUME]: template, ...settings } = Object.fromEntries(values);
  return {
    settings,
    resumeCommand: values.has(RESUME) ? ((template as readonly string[] | undefined) ?? null) : undefined,
    environment: envFile === undefined ? undefined : readEnvFile(context, "set", envFile),
  };
}

function unsetKey(key: string): string {
  return key === "live" ? LIVE : key;
}

/** `live off` and `live SECONDS` stand for the setting that they change. */
function joinLive(words: readonly string[]): string[] {
  const [first, second, ...rest] = words;
  if (first !== "live") return [...words];
  if (second === "off") return [`${LIVE}=null`, ...rest];
  if (second !== undefined && Number(second) > 0) return [`${LIVE}=${second}`, ...rest];
  throw usage("set", "live takes off or a number of seconds above 0, for example: live 30");
}

function requireKey(key: string): string {
  const keys = [...Object.keys(PIT_SETTINGS), RESUME];
  if (keys.includes(key)) return key;
  const near = nearest(key, keys);
  throw usage(
    "set",
    `unknown key ${JSON.stringify(key)}${near === undefined ? "" : `; did you mean ${near}?`}`,
  );
}

/** JSON where it is JSON, for numbers and lists; otherwise text. */
function readValue(key: string, text: string): unknown {
  const { allowed } = PIT_SETTINGS[key as keyof typeof PIT_SETTINGS];
  const value = parseJson(text);
  try {
    readSection(PIT_SETTINGS, { [key]: value }, "");
    return value;
  } catch (error) {
    if (!(error instanceof LazarusError)) throw error;
    throw usage("set", `${key} is not ${allowed}`);
  }
}

function readTemplate(text: string): readonly string[] {
  const value = parseJson(text);
  const isList = Array.isArray(value) && value.every((word) => typeof word === "string");
  const template = isList ? (value as string[]) : splitWords(text);
  const problem = findTemplateProblem(template);
  if (problem !== undefined) throw usage("set", `${RESUME}: ${problem}`);
  return template;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describe(values: Readonly<Record<string, unknown>>, environment: number | null): string {
  const lines = Object.entries(values)
    // The only setting that null turns off.
    .filter(([key, value]) => value !== null || key === LIVE)
    .map(([key, value]) => `${key} = ${typeof value === "string" ? value : JSON.stringify(value)}`);
  const kept = environment === null ? "not kept" : formatCount(environment, "variable");
  return [...lines, `environment: ${kept}`].map((line) => `${escapeControls(line)}\n`).join("");
}
