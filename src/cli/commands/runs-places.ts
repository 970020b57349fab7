// Where the commands about runs look: the stores of all cells, or the one that --store names. Listing only reads; a
// store is opened for writing only by a command that changes a run.
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { cellPaths } from "../../cell/layout.ts";
import { isMissionId } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { CELL_RUNS, openSqliteRunStore } from "../../run/open.ts";
import { type RunPosition, readRunPositions } from "../../run/positions.ts";
import type { RunStore } from "../../run/store.ts";
import type { OptionSpec } from "../command.ts";
import type { CliContext } from "../context.ts";

/** Options of every command about runs. */
export const STORE_OPTIONS = {
  store: { type: "text", value: "FILE|URL", summary: "this store: a runs.db, or postgres://…" },
  mission: { type: "text", value: "ID", summary: "only the store of this mission's cell" },
} as const satisfies Record<string, OptionSpec>;

interface StoreChoice {
  readonly store: string | undefined;
  readonly mission: string | undefined;
}

export interface PlacedRun extends RunPosition {
  readonly mission: string | null;
}

/** Every run of the chosen stores, newest first. */
export async function listPlacedRuns(context: CliContext, choice: StoreChoice): Promise<PlacedRun[]> {
  if (choice.store !== undefined) {
    await using store = await openStore(context, choice.store);
    const runs: PlacedRun[] = [];
    for (const head of await store.list({ limit: 1000 })) {
      const unknown = (await store.effects(head.runId)).filter(({ state }) => state === "unknown");
      const { runId, agentId, status, step, phase, updatedAtMs } = head;
      const position = { runId, agentId, status, step, phase, updatedAtMs, unknownEffects: unknown.length };
      runs.push({ mission: null, store: choice.store, ...position });
    }
    return runs;
  }
  const runs = missionsOf(context, choice.mission).flatMap(({ mission, root }) =>
    readRunPositions(root).map((run) => ({ ...run, mission, store: join(root, run.store) })),
  );
  return runs.sort((a, b) => b.updatedAtMs - a.updatedAtMs);
}

/** Opens the store that holds a run; `text` is its id or the beginning of it. */
export async function findRun(
  context: CliContext,
  choice: StoreChoice,
  text: string,
): Promise<{ store: RunStore; runId: string }> {
  const runs = await listPlacedRuns(context, choice);
  const exact = runs.filter(({ runId }) => runId === text);
  const found = exact.length > 0 ? exact : runs.filter(({ runId }) => runId.startsWith(text));
  const [run] = found;
  if (run === undefined) {
    throw new LazarusError("RUN_UNKNOWN", `there is no run ${JSON.stringify(text)}`, {
      hint: "lazarus runs",
    });
  }
  if (found.length > 1) {
    const few = found.slice(0, 5).map(({ runId, mission }) => `${runId}${mission ? ` (${mission})` : ""}`);
    throw new LazarusError("USAGE", `${JSON.stringify(text)} fits ${found.length} runs: ${few.join(", ")}`, {
      hint: "give more of the id, or --mission",
    });
  }
  return { store: await openStore(context, run.store), runId: run.runId };
}

async function openStore(context: CliContext, place: string): Promise<RunStore> {
  const { machine, surroundings } = context;
  const encryptionKey = keyOf(surroundings.env.LAZARUS_RUN_KEY);
  const options = { machine, ...(encryptionKey === undefined ? {} : { encryptionKey }) };
  if (/^postgres(ql)?:\/\//.test(place)) {
    const { openPostgresRunStore } = await import("../../run/stores/postgres.ts");
    return openPostgresRunStore(place, { ...options, maxConnections: 2, reconnectMs: 2000 });
  }
  const path = resolve(surroundings.cwd, place);
  if (!existsSync(path)) {
    throw new LazarusError("NOT_FOUND", `there is no run store at ${path}`, { hint: `ls -l ${path}` });
  }
  return openSqliteRunStore(path, options);
}

function keyOf(text: string | undefined): Uint8Array | undefined {
  return text === undefined || text === "" ? undefined : new Uint8Array(Buffer.from(text, "base64"));
}

function missionsOf(context: CliContext, only: string | undefined): { mission: string; root: string }[] {
  const { config } = context.config;
  const names = only === undefined ? directoriesIn(config.missions_root) : [only];
  return names.map((name) => {
    const mission = context.mission(name);
    const { root } = cellPaths(config, mission);
    if (only !== undefined && !existsSync(join(root, CELL_RUNS))) {
      throw new LazarusError(
        "RUN_UNKNOWN",
        `mission ${mission} has no runs: there is no ${join(root, CELL_RUNS)}`,
        {
          hint: "lazarus runs",
        },
      );
    }
    return { mission, root };
  });
}

function directoriesIn(root: string): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isMissionId(entry.name))
    .map(({ name }) => name)
    .sort();
}
