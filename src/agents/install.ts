// `lazarus install AGENT`: our hooks in the user's own config, for sessions that Lazarus does not start. The file as it was is
// kept outside (0600), so that uninstall restores it byte for byte; one that was changed since loses only our hooks. Order:
// the original first, then the file, so that there is never a changed file without its original. Links and modes stay.
import { isUtf8 } from "node:buffer";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { asLazarusError, LazarusError, messageOf } from "../platform/errors.ts";
import { readJsonFile } from "../platform/json-file.ts";
import { shellWord } from "../platform/shell-word.ts";
import { type Action, unchanged } from "../service/plan.ts";
import type { Adapter, InstallPlan, Place } from "./adapter.ts";

export interface InstallTarget {
  readonly adapter: Adapter;
  readonly place: Place;
  /** What the hooks run: `lazarus hook <agent> --installed`. */
  readonly command: readonly string[];
  /** Where originals are kept. */
  readonly originals: string;
}

/** One changed file; `before` is null when there was no file. */
interface Original {
  readonly path: string;
  readonly before: string | null;
  readonly after: string;
}

const NEW_FILE = 0o600;

export function planHookInstall(target: InstallTarget): Action[] {
  const plans = plansOf(target);
  const known = readOriginals(target);
  const originals: Original[] = [];
  const writes: Action[] = [];
  for (const plan of plans) {
    const { path, text, mode } = readConfig(plan);
    const after = parsing(plan, () => plan.apply(text));
    if (after === text) {
      writes.push(unchanged(path));
      originals.push(...known.filter((each) => each.path === path));
      continue;
    }
    originals.push({ path, before: originalText(plan, text, known), after });
    writes.push({ do: "write", path, text: after, mode, ...(text !== null && { before: text }) });
  }
  if (!writes.some((action) => action.do === "write")) return writes;
  return [keepOriginals(target, originals), ...writes];
}

/** What was there before the first install: an update replaces hooks of an earlier version. */
function originalText(plan: InstallPlan, text: string | null, known: readonly Original[]): string | null {
  if (text === null) return null;
  const earlier = known.find((each) => each.after === text);
  return earlier === undefined ? parsing(plan, () => plan.remove(text)) : earlier.before;
}

export interface Uninstall {
  readonly actions: readonly Action[];
  /** Files that were changed since the install. */
  readonly changed: readonly string[];
}

export function planHookUninstall(target: InstallTarget): Uninstall {
  const known = readOriginals(target);
  const actions: Action[] = [];
  const changed: string[] = [];
  for (const plan of plansOf(target)) {
    const { path, text, mode } = readConfig(plan);
    if (text === null) {
      actions.push({ do: "nothing", path, reason: "does not exist" });
      continue;
    }
    const original = known.find((each) => each.path === path && each.after === text);
    const before = original === undefined ? parsing(plan, () => plan.remove(text)) : original.before;
    if (before === text) actions.push({ do: "nothing", path, reason: "has no Lazarus hooks" });
    else if (before === null) actions.push({ do: "remove", path });
    else actions.push({ do: "write", path, text: before, mode, before: text });
    if (original === undefined && before !== text && known.some((each) => each.path === path))
      changed.push(path);
  }
  const file = originalsFile(target);
  return { actions: existsSync(file) ? [...actions, { do: "remove", path: file }] : actions, changed };
}

/** The files of the user that contain our hooks now. */
export function installedHooks(target: InstallTarget): string[] {
  return target.adapter.hooks.install(target.place, target.command).flatMap((plan) => {
    try {
      const { path, text } = readConfig(plan);
      return text !== null && plan.remove(text) !== text ? [path] : [];
    } catch {
      return [];
    }
  });
}

function plansOf({ adapter, place, command }: InstallTarget): readonly InstallPlan[] {
  const plans = adapter.hooks.install(place, command);
  if (plans.length > 0) return plans;
  throw new LazarusError("HOOKS_UNSUPPORTED", `${adapter.name} has no hooks to install`, {
    hint: `lazarus run m -- ${adapter.programs[0]} …`,
  });
}

/** Follows links: people keep their settings in a repository. */
function readConfig({ path, mode = NEW_FILE }: InstallPlan): {
  readonly path: string;
  readonly text: string | null;
  readonly mode: number;
} {
  if (!existsSync(path)) return { path, text: null, mode };
  try {
    const real = realpathSync(path);
    const bytes = readFileSync(real);
    if (!isUtf8(bytes)) throw notParsed(path, "it is not UTF-8 text");
    return { path: real, text: bytes.toString("utf8"), mode: statSync(real).mode & 0o7777 };
  } catch (error) {
    throw asLazarusError(error, `reading ${path}`, shellWord(path));
  }
}

function parsing<T>({ path }: InstallPlan, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw notParsed(path, messageOf(error));
  }
}

function notParsed(path: string, reason: string): LazarusError {
  return new LazarusError("CONFIG_INVALID", `${path} was not changed: ${reason}`, {
    hint: `correct ${shellWord(path)} by hand, then try again`,
    details: { path },
  });
}

function originalsFile({ originals, adapter }: InstallTarget): string {
  return join(originals, `${adapter.name}.json`);
}

function keepOriginals(target: InstallTarget, files: readonly Original[]): Action {
  const text = `${JSON.stringify({ format: 1, files }, null, 2)}\n`;
  return { do: "write", path: originalsFile(target), text, mode: NEW_FILE, isInternal: true };
}

function readOriginals(target: InstallTarget): readonly Original[] {
  const reading = readJsonFile(originalsFile(target), 64 * 1024 * 1024);
  return reading.ok && Array.isArray(reading.value.files) ? (reading.value.files as Original[]) : [];
}
