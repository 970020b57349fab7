// Reads and names a session's files in the user's directories. A path must be below the home, or below a directory that a
// variable of the agent names. Links lead away from there: those that the user had made before the agent was started are
// followed, as dotfile managers make them (`Place.links`; the top directory, `~/.claude`, may always be one); no others, since
// an agent could point one at other files of the user. What is refused is reported (INV-6). Credentials are never opened.
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
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

/** The real path of a file below an agent's directory; undefined when it is behind a link, or is not the agent's. */
export function resolveOwn(place: Place, path: string): string | undefined {
  const found = followPath(place, path);
  return found?.link === undefined ? found?.real : undefined;
}

interface FoundPath {
  readonly real: string;
  /** The first link that is not followed. */
  readonly link?: { readonly path: string; readonly target: string; readonly reason: string };
}

/** Undefined for a path that no agent should use. */
function followPath(place: Place, path: string): FoundPath | undefined {
  if (path.includes("\0") || path.split("/").includes("..")) return undefined;
  const root = rootOf(place, path);
  if (root === undefined) return undefined;
  let { lexical, real } = root;
  for (const name of relative(root.lexical, path).split(sep)) {
    lexical = join(lexical, name);
    real = join(real, name);
    const target = targetOf(real);
    if (target === undefined) continue;
    const refuse = (reason: string) => ({
      real,
      link: {
        path: lexical,
        target,
        reason: `a symbolic link is on its path, ${reason}: ${lexical} -> ${target}`,
      },
    });
    if (place.links?.[lexical] !== target) return refuse("which was not there when you started the agent");
    if (CREDENTIAL_NAMES.has(basename(target))) return refuse("and leads to credentials");
    // An unmounted disk, for example: its directories must not be created where it belongs.
    if (lexical !== path && !existsSync(target)) return refuse("and leads nowhere");
    real = target;
  }
  return { real };
}

/** Where a link leads, even if no file exists there now; undefined for anything else. */
function targetOf(path: string): string | undefined {
  let target: string;
  try {
    if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return undefined;
    target = resolve(dirname(path), readlinkSync(path));
  } catch {
    // Opening it reports why it cannot be read.
    return undefined;
  }
  try {
    return realpathSync.native(path);
  } catch {}
  try {
    return join(realpathSync.native(dirname(target)), basename(target));
  } catch {
    return target;
  }
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
  const found = followPath(place, path);
  if (found === undefined) throw new SourceError("it is outside the agent's directories");
  if (found.link !== undefined) throw new SourceError(found.link.reason);
  return found.real;
}

/** Like `requireOwn`, but what is there may itself be a link that is not followed: for a rename. */
export function requireEntry(place: Place, path: string): string {
  const found = followPath(place, path);
  return found?.link?.path === path ? found.real : requireOwn(place, path);
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

/** What could not be read on the way to a session's files. */
export interface Refused {
  readonly reason: string;
  /** Where it leads, if it is a link. */
  readonly target?: string;
}

export interface OwnReader extends SessionReader {
  /** By path. */
  readonly refused: ReadonlyMap<string, Refused>;
}

/** What an adapter may read: the agent's own directories, without credentials. */
export function createSessionReader(adapter: Pick<Adapter, "credentials">, place: Place): OwnReader {
  const refused = new Map<string, Refused>();
  const own = (path: string) => {
    const found = isCredential(adapter, place, path) ? undefined : followPath(place, path);
    if (found?.link === undefined) return found?.real;
    refused.set(found.link.path, found.link);
    return undefined;
  };
  const isDirectory = (path: string) => {
    const real = resolveOwn(place, path);
    return real !== undefined && lstatSync(real, { throwIfNoEntry: false })?.isDirectory() === true;
  };
  return {
    refused,
    list(directory) {
      const real = own(directory);
      if (real === undefined) return [];
      try {
        const entries = readdirSync(real, { withFileTypes: true });
        return entries.map((entry) => ({
          name: entry.name,
          isDirectory: entry.isSymbolicLink()
            ? isDirectory(join(directory, entry.name))
            : entry.isDirectory(),
        }));
      } catch (error) {
        const code = systemErrorCode(error);
        if (code !== "ENOENT" && code !== "ENOTDIR")
          refused.set(directory, { reason: `it cannot be read (${code ?? String(error)})` });
        return [];
      }
    },
    head(path, bytes) {
      if (own(path) === undefined) return undefined;
      try {
        using file = openOwn(place, path);
        return file && readRange(file.fd, 0, Math.min(bytes, file.stat.size)).toString("utf8");
      } catch {
        return undefined;
      }
    },
    createdMs(path) {
      const real = own(path);
      const stat = real === undefined ? undefined : lstatSync(real, { throwIfNoEntry: false });
      return stat && (stat.birthtimeMs || stat.mtimeMs);
    },
  };
}
