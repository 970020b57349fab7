// What was thrown, in words. Tools, models and ports throw undefined, objects without a prototype and errors whose
// message throws; putting them into words must not throw again, or the record of the run would never be closed.

/** Words for anything that can be thrown; `who` is named when it was no error. Never throws. */
export function thrownText(thrown: unknown, who = "something"): string {
  try {
    if (thrown instanceof Error) return String(thrown.message) || String(thrown.name);
    return `${who} threw ${String(thrown)}`;
  } catch {
    return `${who} threw something that cannot be put into words`;
  }
}
