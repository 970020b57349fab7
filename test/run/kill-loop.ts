// The kill loop: SIGKILL at a crash point, restart until the run ends, and count the effects in this process, which is never
// killed. A point that only a resume passes is armed in the resume.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgresRunStore, openSqliteRunStore } from "../../src/run/index.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { ARM, bundleProgram } from "../bundle.ts";

const HERE = import.meta.dirname;
const MAX_STARTS = 5;
/** What only a human's decision passes: the process that records the decision is killed there. */
const DECISION = "engine.resolve.settled";
/** Leaves a started effect behind, with an unknown outcome for the next start. */
const INTERRUPTION = "engine.effect.happened";

/** A nested tool makes its first effect in a step and its second in a child run, both once. */
export const CLASSES = ["read", "idempotent", "once", "reconcile", "nested"] as const;
export type Class = (typeof CLASSES)[number];

/** All crash points of executors and durable agents. The migration of old databases has its own test. */
export function enginePoints(): string[] {
  const names = listCrashPoints(join(HERE, "..", "..", "src")).map(({ name }) => name);
  return [...new Set(names)].filter((name) => /^engine\.(?!migrate\.)/.test(name));
}

interface World extends Disposable {
  readonly url: string;
  /** How often each effect has happened, by its id. */
  readonly effects: Map<string, number>;
}

/** Counts effects over HTTP: POST adds one, GET returns the count. This process survives every kill of the agent. */
async function startWorld(): Promise<World> {
  const effects = new Map<string, number>();
  const server = createServer((request, response) => {
    const id = decodeURIComponent((request.url ?? "/").slice(1));
    if (request.method === "POST") effects.set(id, (effects.get(id) ?? 0) + 1);
    response.end(JSON.stringify({ count: effects.get(id) ?? 0 }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effects,
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A crash point, a store and a class: one entry of the kill matrix. */
export interface MatrixCase {
  readonly point: string;
  readonly store: "sqlite" | "postgres";
  readonly class: Class;
  /** Remove the store after the first kill, as a restore to a checkpoint from before the run does. */
  readonly rollBack?: boolean;
  /** A durable agent instead of an executor, and how it is called. */
  readonly durable?: "generate" | "stream" | undefined;
}

export interface CaseResult extends MatrixCase {
  /** How often the process was killed; 0 when this class never passes the point. */
  readonly kills: number;
  /** Whether a human had to resolve an effect. */
  readonly parked: boolean;
  /** How often each of the two effects happened before a human resolved one. */
  readonly before: readonly number[];
  /** How often each of them had happened at the end. */
  readonly after: readonly number[];
  readonly status: string;
}

interface Ended {
  readonly killed: boolean;
  readonly output: { status?: string; unknown?: string[] };
}

/** Kills at the point, then brings the run to its end. `place` is a directory, or a postgres:// connection. */
export async function killAt(matrixCase: MatrixCase, postgres: string | undefined): Promise<CaseResult> {
  using world = await startWorld();
  const directory = mkdtempSync(join(tmpdir(), "lazarus-kill-"));
  let schema = `k_${matrixCase.durable ?? ""}_${matrixCase.point}_${matrixCase.class}`.replaceAll(
    /[^a-z0-9]/g,
    "_",
  );
  // In a cell: effects that a restored store lacks are still in the effect history.
  const root = join(directory, "missions", "m");
  for (const name of ["meta", "state"]) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "meta", "mission.json"), "{}");
  let place = matrixCase.store === "sqlite" ? join(root, "state", "runs.db") : postgres!;
  const program = matrixCase.durable === undefined ? "crash-agent.ts" : join("durable", "kill-agent.ts");
  const start = (crashAt?: string) =>
    startAgent(program, [place, schema, matrixCase.class, world.url, matrixCase.durable ?? ""], crashAt);
  try {
    let kills = 0;
    let last = await start(matrixCase.point);
    if (!last.killed) {
      // Not reached: start over, interrupt the run, and arm the point in the resume.
      if (matrixCase.store === "sqlite") place = join(root, "state", "again.db");
      else schema += "_2";
      rmSync(join(directory, "missions", ".lazarus-effects"), { recursive: true, force: true });
      world.effects.clear();
      kills += (await start(INTERRUPTION)).killed ? 1 : 0;
      last = await start(matrixCase.point);
      if (!last.killed && matrixCase.point !== DECISION) kills = 0;
    }
    kills += last.killed ? 1 : 0;
    if (matrixCase.rollBack) {
      rmSync(join(root, "state"), { recursive: true });
      mkdirSync(join(root, "state"));
      last = { killed: true, output: {} };
    }
    let before: number[] | undefined;
    let parked = false;
    for (let i = 0; i < MAX_STARTS && last.output.status !== "completed"; i += 1) {
      last = await start();
      const { unknown = [] } = last.output;
      if (unknown.length === 0) continue;
      parked = true;
      before ??= [...world.effects.values()];
      if (matrixCase.point === DECISION) {
        const decide = [place, schema, "resolve", outcomeOf(unknown[0]!, world), unknown[0]!];
        const { killed } = await startAgent("resolve-program.ts", decide, DECISION);
        kills += killed ? 1 : 0;
      }
      await resolveAsHuman(matrixCase.store, [place, schema], unknown, world);
    }
    const after = [...world.effects.values()];
    return {
      ...matrixCase,
      kills: matrixCase.point === DECISION && !parked ? 0 : kills,
      parked,
      before: before ?? after,
      after,
      status: last.output.status ?? "nothing",
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Kills at the first pass of the point, in the case of a nested tool at each: its step and its child run pass the same points
 * as the run does.
 */
export async function killAtPasses(
  matrixCase: MatrixCase,
  postgres: string | undefined,
): Promise<CaseResult[]> {
  const results = [await killAt(matrixCase, postgres)];
  while (matrixCase.class === "nested" && results.at(-1)!.kills > 0) {
    const result = await killAt(
      { ...matrixCase, point: `${matrixCase.point}#${results.length + 1}` },
      postgres,
    );
    if (result.kills === 0 && result.status === "completed") break;
    results.push(result);
  }
  return results;
}

/** Checks how often effects of a class may happen; returns the violation, if any. */
export function findViolation(result: CaseResult): string | undefined {
  const { status, before, after, kills } = result;
  if (status !== "completed") return `the run ended with status ${status}`;
  if (kills === 0) return undefined;
  if (after.length !== 2) return `${after.length} of 2 effects happened`;
  switch (result.class) {
    case "read":
    case "idempotent":
      return after.every((count) => count >= 1) ? undefined : "an effect was lost";
    case "once":
    case "nested":
      if (before.some((count) => count > 1)) return "a once effect happened twice";
      return after.every((count) => count === 1) ? undefined : "a once effect was lost or repeated";
    case "reconcile":
      return after.every((count) => count === 1)
        ? undefined
        : "a reconciled effect did not happen exactly once";
  }
}

async function startAgent(name: string, args: string[], crashAt: string | undefined): Promise<Ended> {
  const program = await bundleProgram(join(HERE, name));
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", ...(crashAt ? ["--import", ARM] : []), program, ...args],
    {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...(crashAt ? { LAZARUS_CRASH_AT: crashAt } : {}) },
    },
  );
  let out = "";
  child.stdout!.on("data", (data) => {
    out += data;
  });
  return new Promise((resolve, reject) =>
    child.once("close", (code, signal) => {
      if (signal === "SIGKILL") resolve({ killed: true, output: {} });
      else if (code === 0) resolve({ killed: false, output: JSON.parse(out) });
      else reject(new Error(`the agent ended with ${code ?? signal}`));
    }),
  );
}

function openStore(store: MatrixCase["store"], place: string, schema: string) {
  return store === "sqlite"
    ? openSqliteRunStore(place)
    : openPostgresRunStore(place, { schema, maxConnections: 1 });
}

/** What a human does with `lazarus runs resolve`: checks whether the effect happened, then reports it. */
async function resolveAsHuman(
  kind: MatrixCase["store"],
  [place, schema]: readonly [string, string],
  effects: readonly string[],
  world: World,
): Promise<void> {
  await using store = await openStore(kind, place, schema);
  for (const id of effects) {
    await store.resolve(id, { outcome: outcomeOf(id, world) }).catch((error: { code?: string }) => {
      // The decision was recorded before its process was killed.
      if (error.code !== "EFFECT_SETTLED") throw error;
    });
  }
}

function outcomeOf(effectId: string, { effects }: World): "done" | "retry" {
  return effects.has(effectId) ? "done" : "retry";
}
