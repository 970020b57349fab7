// Budget: how much runtime and how many tokens a caller may use in a rolling window. The sum is a pure function; the
// shell keeps what was spent, in memory or wherever the host likes. A port of the kernel, which does not know it.
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { BudgetPort } from "../kernel/ports.ts";

/** What a caller may use within a rolling window. */
export interface BudgetLimits {
  readonly windowMs: number;
  readonly runtimeMs?: number;
  readonly tokens?: number;
}

/** What one step of a caller's run took. */
export interface Spending {
  readonly callerId: string;
  readonly atMs: number;
  readonly runtimeMs: number;
  readonly tokens: number;
}

/** Where spendings are kept. `list` gives those since a moment. */
export interface SpendingStore {
  add(spending: Spending): Promise<void> | void;
  list(callerId: string, sinceMs: number): Promise<readonly Spending[]> | readonly Spending[];
}

/** Why a caller may not go on; undefined while there is something left. Pure. */
export function judgeBudget(
  spendings: readonly Spending[],
  limits: BudgetLimits,
  nowMs: number,
): string | undefined {
  const recent = spendings.filter(({ atMs }) => atMs > nowMs - limits.windowMs);
  const sum = (pick: (spending: Spending) => number) => recent.reduce((total, each) => total + pick(each), 0);
  const tokens = sum((each) => each.tokens);
  const runtimeMs = sum((each) => each.runtimeMs);
  if (limits.tokens !== undefined && tokens >= limits.tokens) {
    return `${tokens} of ${limits.tokens} tokens are used in this window`;
  }
  if (limits.runtimeMs !== undefined && runtimeMs >= limits.runtimeMs) {
    return `${Math.round(runtimeMs)} of ${limits.runtimeMs} ms of runtime are used in this window`;
  }
  return undefined;
}

/** Keeps spendings in memory and forgets what has left every window. */
export function createMemorySpendings(keepMs: number): SpendingStore {
  let spendings: Spending[] = [];
  return {
    add(spending) {
      spendings = spendings.filter(({ atMs }) => atMs > spending.atMs - keepMs);
      spendings.push(spending);
    },
    list: (callerId, sinceMs) =>
      spendings.filter((each) => each.callerId === callerId && each.atMs > sinceMs),
  };
}

/** A budget for an executor's ports. Runs without a caller share one; no limits, no budget. */
export function createBudget(
  limits: BudgetLimits,
  store: SpendingStore = createMemorySpendings(limits.windowMs),
  clock: Clock = systemClock,
): BudgetPort {
  const caller = (callerId: string | null) => callerId ?? "";
  return {
    async check(info) {
      const nowMs = clock.nowMs();
      return judgeBudget(await store.list(caller(info.callerId), nowMs - limits.windowMs), limits, nowMs);
    },
    commit: (info, { runtimeMs, usage }) =>
      store.add({
        callerId: caller(info.callerId),
        atMs: clock.nowMs(),
        runtimeMs,
        tokens: usage.inputTokens + usage.outputTokens,
      }),
  };
}
