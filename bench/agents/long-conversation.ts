// A live point of a mission whose agent has a long conversation that grows by a turn: its time, and what the vault gains. The
// results of its tool calls are parts of our own source files, in which no secret is found.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { createConversation, stepLines } from "../../test/agents/conversation/world.ts";
import { median, type Score } from "../harness.ts";
import { directoryBytes, row } from "../live/figures.ts";

const TRANSCRIPT_MB = 50;
const TURN_BYTES = 4096;
const POINTS = 50;
const LIMIT_MS = 20;
/** What a live point itself may cost, as in the bench of live points. */
const POINT_BYTES = 4096;

export async function measureLongConversation(): Promise<Score[]> {
  using world = createConversation();
  const cwd = world.path("worktree");
  let step = 0;
  const source = readSource();
  const turn = () => {
    const at = (step * 1_234_567) % (source.length - TURN_BYTES);
    return stepLines(step++, cwd, source.slice(at, at + TURN_BYTES));
  };
  for (let written = 0; written < TRANSCRIPT_MB * 1e6; ) {
    const text = Array.from({ length: 256 }, () => turn()).join("");
    world.append(text);
    written += text.length;
  }
  await takeCheckpoint(world.context, { reason: "baseline" });
  const before = directoryBytes(world.context.vault.root);
  const times: number[] = [];
  let appended = 0;
  for (let point = 0; point < POINTS; point += 1) {
    const text = turn();
    appended += text.length;
    world.append(text);
    const start = performance.now();
    await takeCheckpoint(world.context, {
      reason: "live",
      git: "deferred",
      onlyIfChanged: true,
      dirty: { paths: new Set(), trees: new Set() },
    });
    times.push(performance.now() - start);
  }
  const name = `a conversation of ${TRANSCRIPT_MB} MB that grows by one turn of 4 KB per live point`;
  const gained = (directoryBytes(world.context.vault.root) - before) / 1000;
  const rounds = POINTS;
  return [
    row(
      name,
      { name: "one point", value: median(times) },
      { name: "limit", value: LIMIT_MS },
      { goal: 1, rounds },
    ),
    row(
      `${name}, per point`,
      { name: "vault", value: gained / POINTS },
      { name: "appended, and a point", value: (appended / POINTS + POINT_BYTES) / 1000 },
      { goal: 1, rounds, unit: "kB" },
    ),
  ];
}

function readSource(): string {
  const root = join(import.meta.dirname, "..", "..", "src");
  const files = globSync("**/*.ts", { cwd: root }).sort();
  return files.map((path) => readFileSync(join(root, path), "utf8")).join("");
}
