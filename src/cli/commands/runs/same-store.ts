// Adds the options of the typed command's store to suggested commands. Pure.
import { LazarusError } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";

/** The options that choose a store. */
export interface StoreChoice {
  readonly store: string | undefined;
  readonly mission: string | undefined;
}

/** The options that select the same store in a suggested command. A URL may contain a password and is not repeated. */
export function sameStore({ store, mission }: StoreChoice): string {
  if (store === undefined) return mission === undefined ? "" : ` --mission ${mission}`;
  return /^\w+:\/\//.test(store) ? " --store …" : ` --store ${shellWord(store)}`;
}

const COMMAND =
  /lazarus runs(?: (?:show|approve|send|cancel|wake|resolve|retry|fork|rerun) [^\s,;]+)?(?<chosen> --(?:store|mission))?/g;

/** The error with a hint whose commands name the store. The library that made the hint does not know the command's options. */
export function withSameStore(error: unknown, choice: StoreChoice): unknown {
  const options = sameStore(choice);
  if (!(error instanceof LazarusError) || error.hint === undefined || options === "") return error;
  const hint = error.hint.replace(COMMAND, (text, chosen) => (chosen === undefined ? text + options : text));
  return Object.assign(error.with({ hint }), { stack: error.stack });
}
