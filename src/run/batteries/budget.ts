// Budgets: runtime and tokens per caller in a rolling window. The decision is a pure function; what was spent is kept in
// memory or in a store of the host. Implements the kernel's budget port.
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { BudgetPort } from "../kernel/ports.ts";

/** What a caller may use within a rolling window. */
export interface BudgetLimits {
  readonly windowMs: number;
  readonly runtimeMs?: number;
  readonly tokens?: number;
}

/** What one step used. */
export interface Spending {
  readonly callerId: string;
  readonly atMs: number;
  readonly runtimeMs: number;
  readonly tokens: number;
}

/** Keeps spendings. `list` returns those after `sinceMs`. */
export interface SpendingStore {
  add(spending: Spending): Promise<void> | void;
  list(callerId: string, sinceMs: number): Promise<readonly Spending[]> | readonly Spending[];
}

/** Why a caller has no budget left; undefined while it has. Pure. */
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
    return `${tokens} of ${limits.tokens} tokens used in this window`;
  }
  if (limits.runtimeMs !== undefined && runtimeMs >= limits.runtimeMs) {
    return `${Math.round(runtimeMs)} of ${limits.runtimeMs} ms of runtime used in this window`;
  }
  return undefined;
}

/** Keeps spendings in memory for `keepMs`. */
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

/** Creates a budget port. Runs without a caller share one budget; without limits nothing is refused. */
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
