// Connects the user's terminal to an agent that has its own: `run` starts the agent and attaches, `attach` reattaches.
import { agentPaths } from "../../../cell/agent-paths.ts";
import type { Life } from "../../../cell/life.ts";
import { toShellStatus } from "../../../cell/life.ts";
import type { MissionId } from "../../../cell/mission-id.ts";
import type { PitContext } from "../../../pit/context.ts";
import { describeDecision } from "../../../pit/death/why.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { type ForegroundEnd, type Left, type SignalRelay, viewLives } from "../../../pit/foreground.ts";
import { nextStep } from "../../../pit/record/record.ts";
import { readRecord } from "../../../pit/record/store.ts";
import type { Started } from "../../../pit/start/start-agent.ts";
import { describeDetachKeys, parseDetachKeys } from "../../../pit/terminal/keys.ts";
import { findTerminalProblem } from "../../../pit/terminal/pty.ts";
import type { TerminalSize } from "../../../pit/terminal/size.ts";
import { pitOwner } from "../../../pit/view.ts";
import type { CliContext } from "../../context.ts";
import { viewTerminal, windowSize } from "../../view-terminal.ts";

export const DEFAULT_DETACH_KEYS = "ctrl-\\";

export interface AttachOptions {
  readonly detachKeys: string;
  readonly readOnly?: boolean;
  /** What Ctrl-C does while no agent runs: default stops, as in `run`. */
  readonly interrupts?: "stops" | "detaches";
}

/** The size of the user's terminal, which the agent's will have; null when there is none, or the agent can have none. */
export function findTerminal(context: CliContext): TerminalSize | null {
  const { isInteractive, outIsTerminal } = context.terminal;
  if (!isInteractive || !outIsTerminal) return null;
  const problem = findTerminalProblem();
  if (problem === undefined) return windowSize();
  context.warn(`the agent shares this terminal, so it ends when the terminal is closed: ${problem}`);
  return null;
}

/** Returns the exit code: the agent's, or 0 when the user has detached. */
export async function attachToLives(
  context: CliContext,
  pitContext: PitContext,
  first: Pick<Started, "record" | "epoch" | "life">,
  relay: SignalRelay,
  { detachKeys, readOnly = false, interrupts = "stops" }: AttachOptions,
): Promise<number> {
  const mission = first.record.mission as MissionId;
  const { terminalSocket: socket } = agentPaths(pitContext.config, mission);
  const keys = parseDetachKeys(detachKeys)!;
  // Pressed while the agent was being started.
  let typed = relay.stop?.signal === "SIGINT" ? "\x03" : "";
  const end = await viewLives(pitContext, mission, first, relay, {
    async view(life: Life) {
      if (relay.left !== undefined) return { signal: relay.left };
      const which = life.epoch === first.epoch ? mission : `life ${life.epoch} of ${mission}`;
      const watching = readOnly ? ", read-only" : "";
      context.say(
        `attached to ${which} (process ${life.agent.pid}${watching}); ${describeDetachKeys(detachKeys)} detaches`,
      );
      const left = await viewTerminal(context, { socket, readOnly, detachKeys: keys, typed });
      typed = "";
      return left;
    },
    report(each) {
      // A pit handled it first.
      const { end: last } = (each.record === undefined && readRecord(pitContext.config, mission)) || {};
      if (last != null) context.say(`${mission}: ${describeEnd(last)}`);
      reportEnd(context, mission, each, interrupts === "stops" ? "Ctrl-C stops it" : "Ctrl-C detaches");
    },
  });
  if ("status" in end) return end.status;
  return reportLeft(context, pitContext, mission, end);
}

function reportLeft(
  context: CliContext,
  pitContext: PitContext,
  mission: MissionId,
  { signal }: Left,
): number {
  if (signal !== "SIGHUP") {
    context.say(
      `detached from ${mission}, which keeps running; reattach with: lazarus attach ${mission}, or stop it with: lazarus stop ${mission}`,
    );
    if (pitOwner(pitContext) === undefined)
      context.say("no pit is running, so a crash is handled only after one is started: lazarus pit");
  }
  return signal === null ? 0 : toShellStatus({ exitCode: null, signal });
}

export function reportEnd(
  context: CliContext,
  mission: string,
  { record, problem }: ForegroundEnd,
  hint = "Ctrl-C stops it",
): void {
  if (problem !== undefined) context.warn(`checkpoint failed: ${problem}`);
  if (record?.end == null || record.life === null) return;
  if (record.wish === "stopped") {
    context.say(
      `${mission} is stopped (${describeEnd(record.end)}); start it again with: lazarus revive ${mission}`,
    );
    return;
  }
  if (record.end.kind === "departure") return;
  const saved = record.scene?.checkpoint ? `; crash checkpoint ${record.scene.checkpoint}` : "";
  context.say(`${mission}: ${describeEnd(record.end)}${saved}`);
  const decision = describeDecision(record, context.machine.clock.nowMs()) ?? "not handled yet";
  const next = nextStep(record) === "wait" ? hint : `see: lazarus why ${mission}`;
  context.say(`  ${decision}; ${next}`);
}
