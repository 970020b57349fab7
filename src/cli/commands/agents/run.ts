import { resolve } from "node:path";
import type { Adapter } from "../../../agents/adapter.ts";
import { recognizeAgent } from "../../../pit/conversation/known-agent.ts";
import { openSignalRelay, runInForeground, saveTerminal } from "../../../pit/foreground.ts";
import { agentLog } from "../../../pit/paths.ts";
import type { Environment } from "../../../pit/record/environment.ts";
import { REVIVE_MODES, type ReviveMode } from "../../../pit/record/record.ts";
import { findTemplateProblem, splitWords } from "../../../pit/start/resume-command.ts";
import { agentName } from "../../../pit/start/revive.ts";
import { requireProgram, startMission } from "../../../pit/start-mission.ts";
import { pitOwner } from "../../../pit/view.ts";
import { LazarusError } from "../../../platform/errors.ts";
import type { CheckpointResult } from "../../../snapshot/operations/checkpoint.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { formatCount } from "../../render/format.ts";
import { checkConfig } from "../../settings.ts";
import { lacksHooks } from "../setup/install-target.ts";
import { readAgentEnvironment } from "./agent-environment.ts";
import { attachToLives, DEFAULT_DETACH_KEYS, findTerminal, reportEnd } from "./attach-to-lives.ts";
import { openCliPitContext } from "./open-pit.ts";
import { refuseInsideLife } from "./refuse-inside-life.ts";
import { chooseRunPlace, prepareRunPlace } from "./run-place.ts";

export const command = defineCommand({
  about:
    "Starts an agent in the mission's cell, which is created if needed. With --here or --in it starts in an existing " +
    "directory, which becomes the mission's worktree: it is saved with every checkpoint and restored in place, and Lazarus " +
    "writes nothing of its own into it. In a terminal, the agent gets its own terminal and you are attached to it: Ctrl-\\ " +
    "or closing the window detaches, and lazarus attach reattaches. Ctrl-C reaches the agent and counts as a stop if the " +
    "agent ends because of it. Without a terminal, the agent uses the command's input and output. The command returns the " +
    "agent's exit code; after a crash, the agent is revived in the same terminal. With --detach, its output goes to " +
    "logs/agent.log. A keeper process records how the agent ends, even when no pit is running. The revive mode decides what " +
    "happens after a crash: yes revives the agent, no leaves it, ask waits for lazarus revive, substitute starts another " +
    "command. The agent's environment has LAZARUS_MISSION, LAZARUS_CELL, LAZARUS_EPOCH and LAZARUS_HEARTBEAT (a file), and " +
    "LAZARUS_SOCKET with LAZARUS_HEARTBEAT_URL for heartbeats over HTTP. The environment is kept for revivals, outside the " +
    "cell and with mode 0600; with --no-env only PATH and the variables that you name are kept.",
  positionals: [
    {
      name: "mission",
      summary: "id of the mission (default with --here and --in: the directory's name)",
      optional: true,
    },
  ],
  options: {
    revive: {
      type: "text",
      value: "MODE",
      choices: [...REVIVE_MODES],
      summary: "what to do after a crash (default ask)",
    },
    "resume-command": {
      type: "text",
      value: "COMMAND",
      summary:
        "command that starts a revival; may contain {session}, {mission}, {cell}, {checkpoint}, {epoch}",
    },
    substitute: { type: "text", value: "COMMAND", summary: "command to start with --revive substitute" },
    detach: { type: "flag", short: "d", summary: "run in the background" },
    stall: {
      type: "number",
      value: "SECONDS",
      summary: "no activity for this long is a stall (default never)",
    },
    env: { type: "texts", value: "NAME[=VALUE]", summary: "set a variable for the agent; may be repeated" },
    "env-file": { type: "text", value: "FILE", summary: "set variables from lines of NAME=VALUE" },
    "no-env": { type: "flag", summary: "do not keep the environment for revivals" },
    replace: { type: "flag", summary: "replace an agent that is due to be revived" },
    "no-adapter": { type: "flag", summary: "do not save or resume the conversation of a known agent" },
    mcp: {
      type: "flag",
      summary: "give a known agent the tools of lazarus mcp, in this and every later life",
    },
    name: { type: "text", value: "NAME", summary: "agent name in the settings (default: its program)" },
    here: { type: "flag", summary: "work in the current directory, which becomes the mission's worktree" },
    in: { type: "text", value: "DIR", summary: "work in this directory, which becomes the worktree" },
    cwd: { type: "text", value: "DIR", summary: "working directory (default: the worktree)" },
    repo: { type: "text", value: "URL|PATH", summary: "clone this repository into a new cell's worktree" },
    branch: { type: "text", value: "NAME", summary: "branch to check out" },
    link: { type: "flag", summary: "add a git worktree of a local repository instead" },
    "no-baseline": { type: "flag", summary: "do not save the cell before the agent starts" },
  },
  passthrough: "command…",
  examples: [
    ["lazarus run --here -- claude", "run in the current directory"],
    ["lazarus run tidy-inbox -- python3 agent.py", "run in the foreground, in a new cell"],
    [
      "lazarus run tidy-inbox -d --revive yes -- claude -p 'tidy the inbox'",
      "run in the background, revive automatically",
    ],
    [
      "lazarus run fix-login -d --repo ~/src/app --link --stall 900 -- codex exec 'fix the login'",
      "with a git worktree and a stall limit",
    ],
  ],
  exits: ["command", "conflict", "machine", "busy", "damaged", "unsupported"],
  async run(context, { args, options, rest }) {
    const place = chooseRunPlace(context, args.mission, options);
    const { mission } = place;
    refuseInsideLife(context, "run", mission);
    if (rest.length === 0) throw usage("run", `missing command: lazarus run ${mission} -- COMMAND`);
    const { substitute, resumeCommand } = readCommands(options);
    if (options.stall !== undefined && !(options.stall > 0))
      throw usage("run", "--stall needs a number of seconds above 0");
    checkConfig(context.config);
    using pitContext = openCliPitContext(context);
    const { kept, env } = readAgentEnvironment(context, options);
    // Before a directory becomes a worktree. A clone may contain the program, so there it is checked afterwards.
    if (place.directory !== undefined) {
      const directory = resolve(context.surroundings.cwd, options.cwd ?? place.directory);
      requireProgram(pitContext, { mission, command: rest, cwd: directory, env }, kept);
    }
    const adapter = options["no-adapter"] ? undefined : recognizeAgent(pitContext, rest)?.adapter;
    if (options.mcp) requireMcp(rest, adapter);
    const cwd = await prepareRunPlace(context, place, options);
    const spec = {
      mission,
      agent: options.name ?? agentName(rest),
      command: rest,
      cwd,
      env,
      revive: (options.revive as ReviveMode | undefined) ?? null,
      substitute,
      ...(resumeCommand === undefined ? {} : { resume_command: resumeCommand }),
      stall_seconds: options.stall ?? null,
      ...(options.mcp && { mcp: true as const }),
      terminal: options.detach ? null : findTerminal(context),
    };
    const keeping = describeKept(kept, env);
    const agent = adapter?.name;
    const announce = () => {
      if (!options.detach) {
        context.say(keeping);
        if (agent !== undefined) context.say(`conversation of ${agent}: saved, and continued after a crash`);
      }
      if (spec.terminal !== null && pitOwner(pitContext) === undefined)
        context.say(
          "no pit is running, so nothing is saved while the agent works, only when it ends; to start one: lazarus pit",
        );
      if (adapter !== undefined && lacksHooks(context, adapter))
        context.say(
          `hooks of ${agent} are not installed, so Lazarus cannot tell which call was cut off; to install them: lazarus install ${agent}`,
        );
    };
    // Installed before the agent starts, so that no signal is lost.
    const { isInteractive } = context.terminal;
    const { clock } = context.machine;
    using relay = options.detach ? undefined : openSignalRelay(clock, { shared: isInteractive });
    const isShared = relay !== undefined && spec.terminal === null;
    const restoreTerminal = isShared && isInteractive ? saveTerminal() : () => {};
    const started = await startMission(pitContext, spec, {
      foreground: isShared,
      replace: options.replace,
      environment: kept,
      baseline: !options["no-baseline"],
      adapter: !options["no-adapter"],
      onStarting: announce,
    });
    reportBaseline(context, mission, started.baseline);
    if (relay !== undefined && !isShared)
      return await attachToLives(context, pitContext, started, relay, { detachKeys: DEFAULT_DETACH_KEYS });
    if (relay !== undefined) {
      const { status, revivedAs } = await runInForeground(pitContext, mission, started, relay, (end) => {
        restoreTerminal();
        reportEnd(context, mission, end);
      });
      if (revivedAs !== undefined)
        context.say(
          `${mission} continues in the background as life ${revivedAs}; see: lazarus logs -f ${mission}`,
        );
      return status;
    }
    const pid = started.life?.agent.pid ?? null;
    const log = agentLog(`${pitContext.config.missions_root}/${mission}`);
    context.emit("run/1", { mission_id: mission, epoch: started.epoch, pid, log }, () => `${mission}\n`);
    if (pid === null) context.say(`it exited immediately; see: lazarus why ${mission}`);
    else context.say(`${mission} is running (process ${pid}); follow it with: lazarus logs -f ${mission}`);
    context.say(keeping);
    const { conversation } = started.record.life!;
    if (conversation !== undefined)
      context.say(`conversation of ${agent}: session ${conversation.session ?? "chosen by the agent"}`);
    if (pitOwner(pitContext) === undefined)
      context.say("no pit is running, so a crash is handled only after one is started: lazarus pit");
    return 0;
  },
});

/** Refused before anything is created. */
function requireMcp(command: readonly string[], adapter: Adapter | undefined): void {
  if (adapter?.mcp !== undefined) return;
  const name = adapter?.name ?? agentName(command);
  throw new LazarusError("USAGE", `--mcp: ${name} has no option for the MCP servers of one run`, {
    hint: "register the server in the agent's own configuration, with the command: lazarus mcp",
  });
}

/** The commands for revivals that are given as options. */
function readCommands(options: {
  readonly revive: string | undefined;
  readonly substitute: string | undefined;
  readonly "resume-command": string | undefined;
}): { readonly substitute: readonly string[] | null; readonly resumeCommand: readonly string[] | undefined } {
  const substitute = options.substitute === undefined ? null : splitWords(options.substitute);
  if (options.revive === "substitute" && substitute === null)
    throw usage("run", "--revive substitute needs --substitute COMMAND");
  const resumeCommand =
    options["resume-command"] === undefined ? undefined : splitWords(options["resume-command"]);
  for (const [option, template] of [
    ["--substitute", substitute],
    ["--resume-command", resumeCommand],
  ] as const) {
    const problem = template == null ? undefined : findTemplateProblem(template);
    if (problem !== undefined) throw usage("run", `${option} COMMAND: ${problem}`);
  }
  return { substitute, resumeCommand };
}

/** An agent starts from what is there, so a path that could not be saved exactly is reported, not fatal (INV-6). */
function reportBaseline(context: CliContext, mission: string, baseline: CheckpointResult | undefined): void {
  if (baseline === undefined || baseline.flaws.length === 0) return;
  const { ref, flaws } = baseline;
  const [first] = flaws;
  const more = flaws.length > 1 ? ` and ${flaws.length - 1} more` : "";
  context.warn(
    `the baseline checkpoint is not exact: ${first!.path}: ${first!.reason}${more}; see: lazarus show ${mission} ${ref.id}`,
  );
}

/** Names and values are not shown. */
function describeKept(kept: Environment | null, env: Environment): string {
  const count = formatCount(Object.keys(kept ?? env).length, "environment variable", "environment variables");
  return `keeping ${count} for revivals, outside the cell${kept === null ? "" : "; --no-env keeps only PATH"}`;
}
