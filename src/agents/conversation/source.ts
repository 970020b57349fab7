// Reads and names a session's files in the user's directories. A path must be below the home, or below a directory that a
// variable of the agent names, and no link may lead away from there: an agent could point one at other files of the user.
// The top directory (`~/.claude`) may itself be a link, as dotfile managers make it. Credentials are never opened.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
} from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { isInside } from "../../cell/mission-id.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Adapter, Place, SessionFile, SessionReader } from "../adapter.ts";

/** Credential files of agents, in any directory; see also DEFAULT_SECRETS of snapshot/settings.ts. */
const CREDENTIAL_NAMES: ReadonlySet<string> = new Set([".credentials.json", "auth.json", "oauth_creds.json"]);

/** The part of a path in which links are followed, with links resolved; undefined for a path that no agent should use. */
function rootOf(place: Place, path: string): { readonly lexical: string; readonly real: string } | undefined {
  // A variable names the agent's directory, or a file in it; below the home every agent has its own directory.
  const named = Object.values(place.env).map((value) =>
    value !== undefined && (value === path || dirname(value) === path) ? dirname(path) : value,
  );
  const bases = [place.home, ...named].filter(
    (base): base is string => base !== undefined && base !== "/" && isInside(base, path),
  );
  const base = bases.sort((a, b) => b.length - a.length)[0];
  if (base === undefined) return undefined;
  const top = join(base, relative(base, path).split(sep)[0]!);
  const lexical = base === place.home && top !== path ? top : base;
  try {
    return { lexical, real: realpathSync.native(lexical) };
  } catch {
    return { lexical, real: lexical };
  }
}

export function isCredential(adapter: Pick<Adapter, "credentials">, place: Place, path: string): boolean {
  if (CREDENTIAL_NAMES.has(basename(path))) return true;
  return adapter.credentials.some(
    (name) => join(place.home, name) === path || basename(name) === basename(path),
  );
}

/** The real path of a file below an agent's directory; undefined when it is a link or behind one, or is not the agent's. */
export function resolveOwn(place: Place, path: string): string | undefined {
  const real = resolveEntry(place, path);
  const isLink = real !== undefined && lstatSync(real, { throwIfNoEntry: false })?.isSymbolicLink();
  return isLink ? undefined : real;
}

/** The same, but what is there may itself be a link: for a rename. */
function resolveEntry(place: Place, path: string): string | undefined {
  if (path.includes("\0") || path.split("/").includes("..")) return undefined;
  const root = rootOf(place, path);
  if (root === undefined) return undefined;
  const names = relative(root.lexical, path).split(sep);
  let current = root.real;
  for (const name of names.slice(0, -1)) {
    current = join(current, name);
    const stat = lstatSync(current, { throwIfNoEntry: false });
    if (stat === undefined) break;
    if (stat.isSymbolicLink()) return undefined;
  }
  return join(root.real, ...names);
}

/**
 * Files in the cell are captured and restored where they are; a database that other sessions share is neither captured nor
 * changed.
 */
export function isReadInPlace(
  { cellRoot }: { readonly cellRoot: string },
  { path, kind }: Pick<SessionFile, "path" | "kind">,
): boolean {
  return kind === "shared" || isInside(cellRoot, path);
}

/** Like `resolveOwn`, or a SourceError. */
export function requireOwn(place: Place, path: string): string {
  return requireReal(resolveOwn(place, path));
}

/** Like `requireOwn`, but what is there may itself be a link: for a rename. */
export function requireEntry(place: Place, path: string): string {
  return requireReal(resolveEntry(place, path));
}

function requireReal(real: string | undefined): string {
  if (real !== undefined) return real;
  throw new SourceError("a symbolic link is on its path, or it is outside the agent's directories");
}

export interface OpenedFile extends Disposable {
  readonly fd: number;
  readonly stat: FileMark;
}

/** Identity and age of a file. */
export interface FileMark {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly mode: number;
}

export class SourceError extends Error {}

/** Opens a session's file for reading; undefined when it does not exist. Throws a SourceError with the reason. */
export function openOwn(place: Place, path: string): OpenedFile | undefined {
  const real = requireOwn(place, path);
  let fd: number;
  try {
    fd = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT") return undefined;
    throw new SourceError(`it cannot be read (${code ?? String(error)})`);
  }
  const opened = { fd, stat: fstatSync(fd), [Symbol.dispose]: () => closeSync(fd) };
  if (opened.stat.isFile() && isStillAt(fd, real)) return opened;
  closeSync(fd);
  throw new SourceError("it is not a regular file");
}

/** A directory may have become a link between the check and the open. On Linux, /proc shows what was opened. */
function isStillAt(fd: number, real: string): boolean {
  if (process.platform !== "linux") return true;
  try {
    return realpathSync.native(`/proc/self/fd/${fd}`) === real;
  } catch {
    return false;
  }
}

export function readRange(fd: number, start: number, end: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.max(0, end - start));
  let length = 0;
  while (length < bytes.length) {
    const count = readSync(fd, bytes, length, bytes.length - length, start + length);
    if (count === 0) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

/** What an adapter may read: the agent's own directories, without credentials. */
export function createSessionReader(adapter: Pick<Adapter, "credentials">, place: Place): SessionReader {
  const own = (path: string) => (isCredential(adapter, place, path) ? undefined : resolveOwn(place, path));
  const quietly = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch {
      return undefined;
    }
  };
  return {
    list(directory) {
      const real = own(directory);
      if (real === undefined) return [];
      const entries = quietly(() => readdirSync(real, { withFileTypes: true })) ?? [];
      return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
    },
    head: (path, bytes) =>
      isCredential(adapter, place, path)
        ? undefined
        : quietly(() => {
            using file = openOwn(place, path);
            return file && readRange(file.fd, 0, Math.min(bytes, file.stat.size)).toString("utf8");
          }),
    createdMs(path) {
      const real = own(path);
      const stat = real === undefined ? undefined : lstatSync(real, { throwIfNoEntry: false });
      return stat && (stat.birthtimeMs || stat.mtimeMs);
    },
  };
}
