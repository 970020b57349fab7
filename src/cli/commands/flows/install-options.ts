// Shared by the install and uninstall commands: options, and printing or executing a plan.
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { structuredPatch } from "diff";
import type { InstallRequest } from "../../../flow/install/install.ts";
import { DEFAULT_STALE_MINUTES } from "../../../flow/selfcheck/report.ts";
import { ERROR_KINDS, systemErrorCode } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { type Action, carryOut, type RunProgram } from "../../../service/plan.ts";
import { SCHEDULERS, type Scheduler } from "../../../service/unit.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { escapeControls } from "../../render/paint.ts";
import { ROOT_OPTION, workspaceOf } from "./flow-space.ts";

export const INSTALL_OPTIONS = {
  "agents-md": { type: "flag", summary: "the start-up section in AGENTS.md" },
  schedule: { type: "text", choices: SCHEDULERS, summary: "a self-check every 10 minutes" },
  skill: { type: "flag", summary: "an Agent Skill folder that explains the commands" },
  "skills-dir": { type: "text", value: "DIR", summary: "skills directory in the workspace (default skills)" },
  "stale-min": {
    type: "number",
    value: "MINUTES",
    summary: "self-check: minutes without an update that count as stale (default 10)",
  },
  "dry-run": { type: "flag", summary: "print what would be done, do nothing" },
  ...ROOT_OPTION,
} as const satisfies Record<string, OptionSpec>;

interface InstallValues {
  readonly "agents-md": boolean;
  readonly schedule: string | undefined;
  readonly skill: boolean;
  readonly "skills-dir": string | undefined;
  readonly "stale-min": number | undefined;
  readonly "dry-run": boolean;
  readonly root: string | undefined;
}

export function requestOf(context: CliContext, name: string, options: InstallValues): InstallRequest {
  if (!options["agents-md"] && !options.skill && options.schedule === undefined) {
    throw usage(
      name,
      "nothing to do: give at least one of --agents-md, --schedule systemd|launchd|cron, --skill",
    );
  }
  const { root } = workspaceOf(context, options);
  const { env, isRoot } = context.surroundings;
  const home = env.HOME;
  if (options.schedule !== undefined && !isRoot && !home)
    throw usage(name, "HOME is not set, so the schedule cannot be installed");
  return {
    root,
    program: [process.execPath, ...(process.argv[1] === undefined ? [] : [resolve(process.argv[1])])],
    home: home ?? "/root",
    configHome: env.XDG_CONFIG_HOME || undefined,
    isRoot,
    staleMinutes: options["stale-min"] ?? DEFAULT_STALE_MINUTES,
    agentsMd: options["agents-md"],
    schedule: options.schedule as Scheduler | undefined,
    skills: options.skill ? resolve(root, options["skills-dir"] ?? "skills") : undefined,
  };
}

export const runProgram: RunProgram = ([program = "", ...args], input) => {
  try {
    const stdout = execFileSync(program, args, {
      encoding: "utf8",
      input: input ?? "",
      stdio: ["pipe", "pipe", "pipe"],
    });
    return { code: 0, stdout, stderr: "" };
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT")
      return { code: 127, stdout: "", stderr: `${program} is not installed` };
    const { status, stderr } = error as { status?: number | null; stderr?: string };
    return { code: status ?? 1, stdout: "", stderr: String(stderr ?? "") };
  }
};

/** For a dry run: reads the crontab if there is one, and never fails. */
export const runForDryRun: RunProgram = (command) => {
  const result = runProgram(command);
  return result.code === 0 ? result : { code: 0, stdout: "", stderr: "" };
};

export function carryOutOrShow(
  context: CliContext,
  actions: readonly Action[],
  dryRun: boolean,
  { schema = "flow-install/1", undo = "lazarus flow uninstall" } = {},
): number {
  const problems = dryRun ? [] : carryOut(context.machine, actions, runProgram);
  const shown = actions.filter((action) => action.do !== "write" || !action.isInternal);
  context.emit(schema, { dryRun, actions: shown, problems }, () =>
    shown.map((action) => render(action, dryRun)).join(""),
  );
  for (const problem of problems) context.warn(problem);
  if (problems.length === 0) return 0;
  context.say(`the files are written; run the failed commands by hand, or undo everything with: ${undo}`);
  return ERROR_KINDS.degraded.exit;
}

function render(action: Action, dryRun: boolean): string {
  switch (action.do) {
    case "nothing":
      return `${escapeControls(action.path)} ${action.reason}\n`;
    case "remove":
      return `${dryRun ? "would remove" : "removed"} ${escapeControls(action.path)}\n`;
    case "run": {
      const line = action.command.map(shellWord).join(" ");
      const input = action.input === undefined ? "" : `, with this input:\n${indent(action.input)}`;
      return `${dryRun ? "would run" : "ran"} ${escapeControls(line)}${dryRun ? input : ""}${input && dryRun ? "" : "\n"}`;
    }
    case "write":
      if (!dryRun) return `wrote ${escapeControls(action.path)}\n`;
      return action.before === undefined
        ? `would write ${escapeControls(action.path)}:\n${indent(action.text)}`
        : `would change ${escapeControls(action.path)}:\n${indent(difference(action.before, action.text))}`;
  }
}

function difference(before: string, after: string): string {
  const lines = (text: string) => text.replace(/\n$/, "").split("\n");
  const { hunks } = structuredPatch("", "", `${lines(before).join("\n")}\n`, `${lines(after).join("\n")}\n`);
  return hunks.flatMap(({ lines: each }) => each).join("\n");
}

function indent(text: string): string {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => `  ${escapeControls(line)}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}
