// Formats thrown values. Tools, models and ports throw undefined, objects without a prototype and errors whose message
// getter throws; formatting them must not throw, or the record of the run would never be closed.

/** The message of anything that can be thrown; `who` is named when it is not an Error. Never throws. */
export function thrownText(thrown: unknown, who = "something"): string {
  try {
    if (thrown instanceof Error) return String(thrown.message) || String(thrown.name);
    return `${who} threw ${String(thrown)}`;
  } catch {
    return `${who} threw a value that cannot be converted to a string`;
  }
}
