// Starts an agent for the user. What can be refused is refused before anything is created: the settings, a program that
// does not exist, a revival of another command that is due (INV-8, INV-11).
import { initCell } from "../cell/init.ts";
import { cellPaths } from "../cell/layout.ts";
import { type MissionId, parseMissionId } from "../cell/mission-id.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import type { CheckpointResult } from "../snapshot/operations/checkpoint.ts";
import type { PitContext } from "./context.ts";
import { type KnownAgent, recognizeAgent } from "./conversation/known-agent.ts";
import { findSessionUser, sessionInUse } from "./conversation/session-claim.ts";
import { handleExit } from "./death/handle-exit.ts";
import type { Environment } from "./record/environment.ts";
import { type AgentSpec, createRecord, type MissionRecord } from "./record/record.ts";
import { readRecord } from "./record/store.ts";
import { checkPitSettings } from "./settings.ts";
import { startConversation } from "./start/agent-conversation.ts";
import { commandNotFound, findProgramProblem } from "./start/find-program.ts";
import { type Started, startAgent } from "./start/start-agent.ts";
import { wakePit } from "./supervise/wake-file.ts";

export interface StartOptions {
  readonly foreground?: boolean;
  /** False: start without a checkpoint from before the agent's work. */
  readonly baseline?: boolean;
  /** Start this command although another one is due to be revived. */
  readonly replace?: boolean;
  /** False: the command is started unchanged, without an adapter. */
  readonly adapter?: boolean;
  /** The agent's environment, to be kept for its later lives. Default: the context's, and nothing is kept. */
  readonly environment?: Environment | null;
  /** Called when the start has not been refused, before the agent can print anything. */
  readonly onStarting?: () => void;
}

export interface StartResult extends Started {
  /** Undefined when none was wanted. */
  readonly baseline: CheckpointResult | undefined;
}

/**
 * Creates the cell when it is missing, and takes a baseline: a checkpoint of what the agent finds, so that even an agent
 * that deletes its own cell can be undone (INV-10).
 */
export async function startMission(
  context: PitContext,
  given: AgentSpec,
  options: StartOptions = {},
): Promise<StartResult> {
  const { machine, config, effective } = context;
  const mission = parseMissionId(given.mission);
  const agent = options.adapter === false ? undefined : recognizeAgent(context, given.command);
  const spec = { ...given, adapter: agent?.adapter.name ?? null };
  checkPitSettings(effective.document, effective.file);
  requireProgram(context, spec, options.environment);
  if (agent !== undefined) refuseSessionInUse(context, mission, agent);
  const { made } = initCell(machine, config, mission);
  if (made.length > 0)
    context.recordEvent({
      kind: "init",
      mission,
      data: { root: cellPaths(config, mission).root, made, repo: null },
    });
  using _ = await context.lockMissionAfterStop(mission, `start of ${mission}`);
  // An exit that no pit has seen is handled first: its checkpoint is taken before anything changes the cell.
  const previous = await handleExit(context, readRecord(config, mission), {
    withoutCheckpoint: options.baseline === false,
  });
  if (previous.state === "checkpoint-failed") throw previous.error;
  if (options.replace !== true) refuseReplacing(previous.record, spec);
  const baseline = options.baseline === false ? undefined : await takeBaseline(context, mission, spec.agent);
  const environment = options.environment ?? null;
  const record = {
    ...createRecord(previous.record, spec, machine.clock.nowMs()),
    environment: environment === null ? null : Object.keys(environment).length,
  };
  const started = await startAgent(context, record, {
    how: "start",
    environment,
    prepare: async (epoch, env) => {
      const prepared = await startConversation(context, record, epoch, env);
      options.onStarting?.();
      return prepared;
    },
    ...(options.foreground ? { foreground: true } : {}),
  });
  context.recordEvent({
    kind: "start",
    mission,
    data: { epoch: started.epoch, pid: started.life?.agent.pid ?? null, command: spec.command[0] ?? "" },
  });
  wakePit(machine, config, mission);
  return { ...started, baseline };
}

async function takeBaseline(
  context: PitContext,
  mission: MissionId,
  agent: string,
): Promise<CheckpointResult> {
  try {
    return await context.takeCheckpoint(mission, {
      reason: "baseline",
      agent,
      onlyIfChanged: true,
    });
  } catch (thrown) {
    const { root } = cellPaths(context.config, mission);
    const error = asLazarusError(thrown, `saving the cell of ${mission}`, root);
    const without = `start without a checkpoint of what is there now: lazarus run ${mission} --no-baseline -- COMMAND`;
    throw error.with({ consequence: "the agent was not started", hint: error.hintOr(without) });
  }
}

/** Throws when the agent's program cannot be started. */
export function requireProgram(
  context: PitContext,
  { mission, command, cwd, env }: Pick<AgentSpec, "mission" | "command" | "cwd" | "env">,
  environment: Environment | null = null,
): void {
  const { PATH } = { ...(environment ?? context.environment), ...env };
  const directory = cwd ?? cellPaths(context.config, parseMissionId(mission)).worktree;
  const problem = findProgramProblem(command, PATH, directory);
  if (problem !== undefined) throw commandNotFound(`the agent of ${mission}`, problem, { mission });
}

/** A session that the user names, before anything is created; claimSession checks again, under its lock. */
function refuseSessionInUse(
  context: PitContext,
  mission: MissionId,
  { adapter, invocation: { session } }: KnownAgent,
): void {
  if (session === null || session === "newest") return;
  const user = findSessionUser(context, mission, adapter, session.id);
  if (user !== undefined) throw sessionInUse(session.id, user);
}

/** A revival that is due, or waits for approval, is not silently replaced by another command. */
function refuseReplacing(record: MissionRecord | undefined, { mission, command }: AgentSpec): void {
  if (record?.decision == null || record.decision.epoch !== record.life?.epoch) return;
  const { action } = record.decision;
  if (record.wish !== "running" || action === "rest" || action === "tombstone") return;
  if (JSON.stringify(record.command) === JSON.stringify(command)) return;
  const state = action === "ask" ? "waits for your approval to be revived" : "is due to be revived";
  throw new LazarusError("AGENT_DUE", `the agent of ${mission} ${state}, with another command`, {
    hint: `lazarus revive ${mission}, or start the new command with: lazarus run ${mission} --replace -- COMMAND`,
    details: { mission, command: record.command },
  });
}
