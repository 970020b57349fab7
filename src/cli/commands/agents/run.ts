import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { initCell } from "../../../cell/init.ts";
import { startMission } from "../../../pit/actions.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { openSignalRelay, waitForAgent } from "../../../pit/foreground.ts";
import { agentLog } from "../../../pit/paths.ts";
import { REVIVE_MODES, type ReviveMode } from "../../../pit/record/record.ts";
import { agentName, splitWords } from "../../../pit/start/revive.ts";
import { pitOwner } from "../../../pit/view.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Starts an agent in the mission's cell, which is made when it is missing. In the foreground it has your terminal: " +
    "input, output, signals and the exit code pass through. Detached, its output goes to logs/agent.log and it goes on " +
    "without you. A keeper records how it ends, also when no pit is running. What is done about a crash is decided by " +
    "the revive mode: yes brings it back, no leaves it, ask waits for your word, substitute starts another command. The " +
    "agent finds LAZARUS_MISSION, LAZARUS_CELL, LAZARUS_EPOCH and LAZARUS_HEARTBEAT (a file) in its environment, and " +
    "LAZARUS_SOCKET with LAZARUS_HEARTBEAT_URL to say over HTTP that it lives. What it is told with --env, and PATH, is " +
    "stored for its revival.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    revive: {
      type: "text",
      value: "MODE",
      choices: [...REVIVE_MODES],
      summary: "what to do about a crash (ask)",
    },
    substitute: { type: "text", value: "COMMAND", summary: "the other command, for --revive substitute" },
    detach: { type: "flag", short: "d", summary: "let it go on without this terminal" },
    stall: { type: "number", value: "SECONDS", summary: "silence past this is a stall (never)" },
    env: { type: "texts", value: "NAME[=VALUE]", summary: "for the agent and its revivals; may be repeated" },
    name: { type: "text", value: "NAME", summary: "what the settings call this agent (its program's name)" },
    cwd: { type: "text", value: "DIR", summary: "start it here (the cell's worktree)" },
    repo: { type: "text", value: "URL|PATH", summary: "fill a new cell's worktree from this repository" },
    branch: { type: "text", value: "NAME", summary: "check out this branch of it" },
    link: { type: "flag", summary: "add a linked worktree of the local repository instead of a clone" },
  },
  passthrough: "command…",
  examples: [
    ["lazarus run tidy-inbox -- python3 agent.py", "in the foreground"],
    [
      "lazarus run tidy-inbox -d --revive yes -- claude -p 'tidy the inbox'",
      "detached, brought back by itself",
    ],
    [
      "lazarus run fix-login -d --repo ~/src/app --link --stall 900 -- codex exec 'fix the login'",
      "with a worktree",
    ],
  ],
  exits: ["conflict", "machine", "busy", "damaged", "unsupported"],
  async run(context, { args, options, rest }) {
    const mission = context.mission(args.mission);
    if (rest.length === 0) throw usage("run", `which command? lazarus run ${mission} -- COMMAND`);
    const substitute = options.substitute === undefined ? null : splitWords(options.substitute);
    if ((options.revive === "substitute" && substitute === null) || substitute?.length === 0)
      throw usage("run", "--revive substitute needs --substitute COMMAND");
    if (options.stall !== undefined && !(options.stall > 0))
      throw usage("run", "--stall is a number of seconds above 0");
    using pitContext = openCliPitContext(context);
    await fill(context, mission, options);
    const { cwd } = context.surroundings;
    const spec = {
      mission,
      agent: options.name ?? agentName(rest),
      command: rest,
      cwd: options.cwd === undefined ? null : existing(resolve(cwd, options.cwd)),
      env: readEnv(context, options.env),
      revive: (options.revive as ReviveMode | undefined) ?? null,
      substitute,
      stall_seconds: options.stall ?? null,
    };
    // From here on, so that no signal finds the agent started and nobody to pass it on.
    using relay = options.detach ? undefined : openSignalRelay({ shared: context.terminal.isInteractive });
    const started = await startMission(pitContext, spec, { foreground: !options.detach });
    if (relay !== undefined) {
      const end = await waitForAgent(pitContext, mission, started, relay);
      const last = end.record?.end;
      if (last && last.kind !== "departure") {
        const kept = end.record?.scene?.checkpoint ? `; crash checkpoint ${end.record.scene.checkpoint}` : "";
        context.say(`${mission}: ${describeEnd(last)}${kept}`);
        context.say(
          `  ${end.record?.decision?.action}: ${end.record?.decision?.reason}; see: lazarus why ${mission}`,
        );
      }
      if (end.revivedAs !== undefined)
        context.say(
          `${mission} goes on without this terminal as life ${end.revivedAs}; see: lazarus logs -f ${mission}`,
        );
      if (end.problem !== undefined) context.warn(`checkpoint failed: ${end.problem}`);
      return end.status;
    }
    const pid = started.life?.agent.pid ?? null;
    const log = agentLog(`${pitContext.config.missions_root}/${mission}`);
    context.emit("run/1", { mission_id: mission, epoch: started.epoch, pid, log }, () => `${mission}\n`);
    if (pid === null) context.say(`it ended at once; see: lazarus why ${mission}`);
    else context.say(`${mission} is at work (process ${pid}); follow it with: lazarus logs -f ${mission}`);
    if (pitOwner(pitContext) === undefined)
      context.say("no pit is running: a crash will be dealt with when one is started (lazarus pit)");
    return 0;
  },
});

interface RepoOptions {
  readonly repo: string | undefined;
  readonly branch: string | undefined;
  readonly link: boolean;
}

async function fill(context: CliContext, text: string, { repo, branch, link }: RepoOptions): Promise<void> {
  if (repo === undefined) return;
  const mission = context.mission(text);
  const { paths, made } = initCell(context.machine, context.config.config, mission);
  if (!made.includes("worktree/") && existsSync(`${paths.worktree}/.git`)) return;
  const { fillWorktree } = await import("../../../cell/worktree.ts");
  context.say(`${link ? "linking" : "cloning"} ${repo} into ${paths.worktree} …`);
  fillWorktree(context.machine.disk, paths.worktree, { repo, branch, link }, context.surroundings.cwd);
  await context.record({ kind: "init", mission, data: { root: paths.root, made, repo } });
}

/** PATH is stored with them: a pit under a service manager has another one, and would find no command. */
function readEnv(context: CliContext, given: readonly string[]): Record<string, string> {
  const { env } = context.surroundings;
  const values: Record<string, string> = env.PATH === undefined ? {} : { PATH: env.PATH };
  for (const text of given) {
    const at = text.indexOf("=");
    const name = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? env[name] : text.slice(at + 1);
    if (!/^[A-Za-z_]\w*$/.test(name)) throw usage("run", `${JSON.stringify(name)} is not a variable's name`);
    if (value === undefined) throw usage("run", `${name} is not set here, so it cannot be handed on`);
    values[name] = value;
  }
  return values;
}

function existing(directory: string): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return directory;
  throw new LazarusError("NOT_FOUND", `there is no directory ${directory}`, {
    hint: `mkdir -p ${directory}`,
  });
}
