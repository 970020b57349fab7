import { closeSync, openSync, readSync, statSync } from "node:fs";
import { isKnownMission, unknownMission } from "../../../cell/known-missions.ts";
import { cellPaths } from "../../../cell/layout.ts";
import { isKeeperAlive } from "../../../cell/life.ts";
import type { MissionId } from "../../../cell/mission-id.ts";
import { readLogTail } from "../../../pit/death/log-tail.ts";
import { agentLog } from "../../../pit/paths.ts";
import type { MissionRecord, RecordedLife } from "../../../pit/record/record.ts";
import { readRecord } from "../../../pit/record/store.ts";
import { createReadableText } from "../../../pit/terminal/readable.ts";
import { LazarusError, quietly } from "../../../platform/errors.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";

const POLL_MS = 100;
const DEFAULT_LINES = 50;
const WINDOW_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

export const command = defineCommand({
  about:
    "Prints the output of an agent that was started with --detach or in a terminal. Older output is in logs/agent.log.1 and " +
    "so on. With -f it follows the output until the agent exits or you interrupt it. Output is printed unchanged, including " +
    "terminal escapes; what an agent wrote to its own terminal is printed as lines of text (lazarus attach shows its " +
    "screen). An agent without either writes to the output of lazarus run, and at most its stderr is in the log.",
  positionals: [MISSION_ARGUMENT],
  options: {
    follow: { type: "flag", short: "f", summary: "follow the output" },
    lines: {
      type: "number",
      short: "n",
      value: "N",
      summary: `print the last N lines (default ${DEFAULT_LINES})`,
    },
  },
  examples: [
    ["lazarus logs tidy-inbox", "print the last 50 lines"],
    ["lazarus logs tidy-inbox -f", "follow the output"],
  ],
  exits: ["missing", "machine"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const path = agentLog(cellPaths(context.config.config, mission).root);
    const record = findRecord(context, mission);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      if (!isKnownMission(context.config.config, mission))
        throw unknownMission(context.config.config, mission);
      throw noLog(mission, path, record);
    }
    const isTerminal = record?.terminal != null;
    if (isShared(record)) context.say(`the output of life ${record.life.epoch} is not here: ${SHARED}`);
    const lines = readLogTail(path, options.lines ?? DEFAULT_LINES, {
      windowBytes: WINDOW_BYTES,
      isTerminal,
    });
    if (lines.length > 0) context.terminal.out(`${lines.join("\n")}\n`);
    if (options.follow) await follow(context, mission, path, stat.size, isTerminal);
    return 0;
  },
});

/** Prints output from `offset` on until the agent exits or the user interrupts. */
export async function follow(
  context: CliContext,
  mission: MissionId,
  path: string,
  offset: number,
  isTerminal = false,
): Promise<void> {
  const { machine, signal } = context;
  const text = isTerminal ? createReadableText() : undefined;
  const print = (bytes: Buffer) => context.terminal.out(text === undefined ? bytes : text.add(bytes));
  const { config } = context.config;
  let at = offset;
  for (;;) {
    // Check before reading, so that the last output is not missed.
    const ended = !isKeeperAlive(machine.processes, config, mission);
    at = printNew(path, at, print);
    if (ended && text?.rest()) context.terminal.out(`${text.rest()}\n`);
    if (ended || signal.aborted) return;
    await machine.clock.sleep(POLL_MS, signal);
  }
}

const SHARED = "the agent used the output of lazarus run, and at most its stderr is in the log";

/** Undefined also when it cannot be read: the log can. */
function findRecord({ config: { config } }: CliContext, mission: MissionId): MissionRecord | undefined {
  return quietly(() => readRecord(config, mission));
}

/** The newest life has the output of the command that started it. */
function isShared(
  record: MissionRecord | undefined,
): record is MissionRecord & { readonly life: RecordedLife } {
  return record?.life?.foreground != null;
}

function noLog(mission: MissionId, path: string, record: MissionRecord | undefined): LazarusError {
  if (!isShared(record))
    return new LazarusError("AGENT_UNKNOWN", `${mission} has no agent log at ${path}`, {
      hint: `lazarus run ${mission} -d -- COMMAND`,
    });
  const { conversation } = record.life;
  return new LazarusError("AGENT_UNKNOWN", `${mission} has no agent log: ${SHARED}`, {
    hint: `${conversation === undefined ? "" : `lazarus conversation ${mission}; `}to log its output next time, start it with -d or in a terminal`,
  });
}

function printNew(path: string, offset: number, print: (bytes: Buffer) => void): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  // Shorter than before: the log was rotated, so start at its beginning.
  let at = size < offset ? 0 : offset;
  if (at === size) return at;
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const count = readSync(fd, buffer, 0, buffer.length, at);
      if (count === 0) return at;
      print(buffer.subarray(0, count));
      at += count;
    }
  } finally {
    closeSync(fd);
  }
}
