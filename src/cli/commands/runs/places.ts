// Finds run stores and runs for the commands about runs: the stores of all cells, or the one given by --store. Listing is
// read-only; a store is opened for writing only by a command that changes a run.
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { cellPaths } from "../../../cell/layout.ts";
import { isMissionId } from "../../../cell/mission-id.ts";
import { asLazarusError, LazarusError } from "../../../platform/errors.ts";
import type { RunHead } from "../../../run/model/types.ts";
import { CELL_RUNS, openSqliteRunStore } from "../../../run/store/open.ts";
import {
  findRunPositions,
  hasUnknownOutcome,
  MAX_POSITIONS,
  type RunPosition,
} from "../../../run/store/positions.ts";
import type { RunStore } from "../../../run/store/store.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import type { StoreChoice } from "./same-store.ts";

/** Options of every command about runs. */
export const STORE_OPTIONS = {
  store: { type: "text", value: "FILE|URL", summary: "run store: a runs.db file or postgres://…" },
  mission: { type: "text", value: "ID", summary: "only the store of this mission" },
} as const satisfies Record<string, OptionSpec>;

/** A run and its store. */
export interface PlacedRun extends RunPosition {
  readonly mission: string | null;
}

/** The runs of the selected stores, with the stores that could not be read or were cut off. */
export interface PlacedRuns {
  /** Newest first. */
  readonly runs: readonly PlacedRun[];
  readonly problems: readonly { readonly mission: string | null; readonly problem: string }[];
  /** Stores with more runs than are listed. */
  readonly cut: readonly string[];
}

/** Lists the selected stores. An unreadable store is reported and does not hide the others. */
export async function listPlacedRuns(context: CliContext, choice: StoreChoice): Promise<PlacedRuns> {
  if (choice.store !== undefined) {
    await using store = await openStore(context, choice.store);
    const runs = await placedIn(store, choice.store, await store.list({ limit: MAX_POSITIONS + 1 }));
    const cut = runs.length > MAX_POSITIONS ? [choice.store] : [];
    return { runs: runs.slice(0, MAX_POSITIONS), problems: [], cut };
  }
  const found = missionsOf(context, choice.mission).map((place) => positionsIn(place, ""));
  return {
    runs: found.flatMap(({ runs }) => runs).sort((a, b) => b.updatedAtMs - a.updatedAtMs),
    problems: found.flatMap(({ mission, problem }) => (problem === undefined ? [] : [{ mission, problem }])),
    cut: found.filter(({ runs }) => runs.length >= MAX_POSITIONS).map(({ root }) => join(root, CELL_RUNS)),
  };
}

/** The paths or URLs of the selected stores, including empty ones. */
export function listStores(context: CliContext, choice: StoreChoice): string[] {
  if (choice.store !== undefined) return [choice.store];
  return missionsOf(context, choice.mission)
    .map(({ root }) => join(root, CELL_RUNS))
    .filter((path) => existsSync(path));
}

/** Opens the store of a run; `text` is its id or a prefix of it. */
export async function findRun(
  context: CliContext,
  choice: StoreChoice,
  text: string,
): Promise<{ store: RunStore; runId: string }> {
  const runs = await findByStart(context, choice, text);
  const exact = runs.filter(({ runId }) => runId === text);
  const found = exact.length > 0 ? exact : runs;
  const [run] = found;
  if (run === undefined) {
    throw new LazarusError("RUN_UNKNOWN", `there is no run ${JSON.stringify(text)}`, {
      hint: "lazarus runs",
    });
  }
  if (found.length > 1) {
    const few = found.slice(0, 5).map(({ runId, mission }) => `${runId}${mission ? ` (${mission})` : ""}`);
    throw new LazarusError(
      "USAGE",
      `${JSON.stringify(text)} matches ${found.length} runs: ${few.join(", ")}`,
      {
        hint: "type more of the id, or add --mission ID",
      },
    );
  }
  return { store: await openStore(context, run.store), runId: run.runId };
}

/** Tries the exact id first, because a store may hold more runs than a listing returns. */
async function findByStart(
  context: CliContext,
  choice: StoreChoice,
  text: string,
): Promise<readonly Pick<PlacedRun, "runId" | "mission" | "store">[]> {
  if (choice.store !== undefined) {
    const place = choice.store;
    await using store = await openStore(context, place);
    const { journal } = store.log;
    const head = await journal.readHead(text);
    const heads = head && head.status !== "stub" ? [head] : await journal.list({ idPrefix: text, limit: 10 });
    return heads.map(({ id }) => ({ runId: id, mission: null, store: place }));
  }
  const found = missionsOf(context, choice.mission).map((place) => positionsIn(place, text));
  const runs = found.flatMap((each) => each.runs);
  const [broken] = found.filter(({ problem }) => problem !== undefined);
  if (runs.length > 0 || broken === undefined) return runs;
  throw new LazarusError("RUN_UNKNOWN", `there is no run ${JSON.stringify(text)}, but ${broken.problem}`, {
    hint: `lazarus runs --mission ${broken.mission}`,
  });
}

function positionsIn({ mission, root }: { mission: string; root: string }, start: string) {
  try {
    const runs = findRunPositions(root, start).map((run) => ({
      ...run,
      mission,
      store: join(root, run.store),
    }));
    return { mission, root, runs, problem: undefined };
  } catch (error) {
    return { mission, root, runs: [], problem: asLazarusError(error, `the runs of ${mission}`).message };
  }
}

async function placedIn(store: RunStore, place: string, heads: readonly RunHead[]): Promise<PlacedRun[]> {
  const runs: PlacedRun[] = [];
  for (const { runId, agentId, status, step, phase, updatedAtMs } of heads) {
    // Completed runs have no unknown effects; each other run costs a query.
    const effects = status === "completed" ? [] : await store.effects(runId).catch(() => []);
    const unknownEffects = effects.filter(hasUnknownOutcome).length;
    const position = { runId, agentId, status, step, phase, updatedAtMs, unknownEffects };
    runs.push({ mission: null, store: place, ...position });
  }
  return runs;
}

/** Opens the selected store, for a command that is about a whole store. */
export async function openOnly(context: CliContext, choice: StoreChoice): Promise<RunStore> {
  const places = listStores(context, choice);
  const [place] = places;
  if (place !== undefined && places.length === 1) return openStore(context, place);
  throw new LazarusError(
    "USAGE",
    place === undefined ? "there is no run store" : `there are ${places.length} run stores`,
    { hint: place === undefined ? "--store FILE|URL" : "add --mission ID or --store FILE|URL" },
  );
}

/** Opens a store for a command about one run, with the key in LAZARUS_RUN_KEY. */
export async function openStore(context: CliContext, place: string): Promise<RunStore> {
  const { machine, surroundings } = context;
  const encryptionKey = keyOf(surroundings.env.LAZARUS_RUN_KEY);
  const options = { machine, ...(encryptionKey === undefined ? {} : { encryptionKey }) };
  if (/^postgres(ql)?:\/\//.test(place)) {
    const { openPostgresRunStore } = await import("../../../run/store/open-postgres.ts");
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
