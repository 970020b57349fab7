// What both agents of the kill loop have in common: their store, the service that counts effects, a tool whose effects happen
// as its class says, and what they print at the end. Configured by their arguments.
import {
  currentEffect,
  type EffectClass,
  listRuns,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  step,
} from "../../src/run/index.ts";

const [place = "", schema = "", effect = "", world = ""] = process.argv.slice(2);
export const RUN_ID = "r";
export const effectClass = effect as EffectClass;

export function openStore(): Promise<RunStore> {
  return place.startsWith("postgres:")
    ? openPostgresRunStore(place, { schema, maxConnections: 2 })
    : Promise.resolve(openSqliteRunStore(place));
}

/** The effect of the tool call that is in progress. */
export async function postEffect(): Promise<string> {
  await fetch(`${world}/${currentEffect()!.id}`, { method: "POST" });
  return "acted";
}

/** A nested tool: its first call makes the effect in a step, the second in a child run. */
export function actNested(startChild: () => Promise<unknown>): Promise<unknown> {
  return currentEffect()!.step === 1 ? step("post", postEffect) : startChild();
}

/** Asks the service whether an effect happened. */
export async function reconcile(id: string) {
  const { count } = (await (await fetch(`${world}/${id}`)).json()) as { count: number };
  return count > 0 ? { outcome: "done" as const, output: "acted" } : { outcome: "not-done" as const };
}

/** Prints how the run ended, and which effects of it and its child runs are unknown. */
export async function printEnd(store: RunStore): Promise<void> {
  const { journal } = store.log;
  const unknown: string[] = [];
  for (const { runId } of await listRuns(store.log)) {
    const entries = await journal.readEntries(runId);
    const found = entries.filter(({ kind, state }) => kind === "effect" && state === "unknown");
    unknown.push(...found.map(({ step: of, call }) => `${runId}.${of}.${call}`));
  }
  process.stdout.write(JSON.stringify({ status: (await journal.readHead(RUN_ID))?.status, unknown }));
}
