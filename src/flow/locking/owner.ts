// The owner of a lock or mutex, and whether it is still alive. Pids are reused, so an owner is pid + start time + boot id,
// on a host, in a pid namespace. The verdict is a pure function; only `selfOwner` and `ownerOf` read the machine.
import { readFileSync, readlinkSync } from "node:fs";
import { type Processes, type ProcessIdentity, systemProcesses } from "../../platform/process-identity.ts";
import { sha256Hex } from "../../platform/sha256.ts";

/** The owner of a flow: a process or a name. */
export interface Owner {
  /** A name given with `--owner`, which outlives processes; null when the process is the owner. */
  readonly name: string | null;
  readonly pid: number;
  readonly processStart: string;
  readonly bootId: string;
  readonly host: string;
  /** The kernel's number of the pid namespace, since pids are not comparable across namespaces. Null where there is none. */
  readonly namespace: string | null;
  /** A hash of the container's root layer, which survives a restart; null outside containers. */
  readonly container: string | null;
}

/** `elsewhere`: on another machine or in another container, whose processes are not visible here. */
export type Liveness = "alive" | "dead" | "elsewhere";

/** Whether `owner` is alive, as seen from `me`. `startTime` is that of the process that has its pid now, if any. */
export function judgeLiveness(owner: Owner, me: Owner, startTime: string | undefined): Liveness {
  if (owner.host !== me.host) return "elsewhere";
  if (owner.bootId !== me.bootId) return "dead";
  if (owner.namespace !== me.namespace) {
    // After a restart, a container has a new pid namespace and the same root layer: all its earlier processes are dead.
    return owner.container !== null && owner.container === me.container ? "dead" : "elsewhere";
  }
  return startTime === owner.processStart ? "alive" : "dead";
}

export function livenessOf(processes: Processes, owner: Owner, me: Owner): Liveness {
  return judgeLiveness(owner, me, processes.identify(owner.pid)?.startTime);
}

/** Whether both have the same `--owner` name or are the same process. */
export function isSameOwner(a: Owner, b: Owner): boolean {
  if (a.name !== null && b.name !== null) return a.name === b.name;
  return isSameProcess(a, b);
}

export function isSameProcess(a: Owner, b: Owner): boolean {
  return (
    a.pid === b.pid &&
    a.processStart === b.processStart &&
    a.bootId === b.bootId &&
    a.host === b.host &&
    a.namespace === b.namespace
  );
}

let cachedSelf: Owner | undefined;

/** This process as an owner. */
export function selfOwner(processes: Processes, givenName: string | null = null): Owner {
  // An empty name, for example from an unset variable, would make all callers the same owner.
  const name = givenName || null;
  // Cached: reading it again would take a tenth of the time of an update through the library.
  if (processes === systemProcesses && cachedSelf !== undefined) return { ...cachedSelf, name };
  const self = toOwner(processes, processes.self(), name);
  if (processes === systemProcesses) cachedSelf = self;
  return self;
}

/** Another process as an owner; undefined when no process has that pid. */
export function ownerOf(processes: Processes, pid: number, name: string | null = null): Owner | undefined {
  const identity = processes.identify(pid);
  return identity && toOwner(processes, identity, name || null);
}

function toOwner(processes: Processes, identity: ProcessIdentity, name: string | null): Owner {
  const { pid, startTime, bootId } = identity;
  return { name, pid, processStart: startTime, bootId, host: processes.hostName(), ...readContainer() };
}

/** Parses an owner from JSON; undefined when it is not one. */
export function parseOwner(value: Readonly<Record<string, unknown>>): Owner | undefined {
  const { owner, pid, processStart, bootId, host, namespace, container } = value;
  if (typeof pid !== "number" || !Number.isInteger(pid) || pid <= 0) return undefined;
  if (typeof processStart !== "string" || typeof bootId !== "string" || typeof host !== "string")
    return undefined;
  const textOrNull = (field: unknown) => (typeof field === "string" ? field : null);
  return {
    name: textOrNull(owner),
    pid,
    processStart,
    bootId,
    host,
    namespace: textOrNull(namespace),
    container: textOrNull(container),
  };
}

/**
 * An owner in at most 59 characters, which file systems store in the inode of a symbolic link at a third of the cost of
 * a longer one. Host, namespace and container are only compared, so a short hash of each is enough.
 */
export function ownerMark(owner: Owner): string {
  const { pid, processStart, bootId, host, namespace, container } = owner;
  return [
    pid,
    lastCharacters(processStart, 14),
    bootId.slice(0, 8),
    shortHash(host),
    shortHash(namespace),
    shortHash(container),
  ].join("~");
}

/** Whether the owner with this mark is alive, as seen from `me`; undefined when the text is not a mark. */
export function livenessOfMark(
  processes: Processes,
  mark: string,
  me: Owner,
): { pid: number; liveness: Liveness } | undefined {
  const [pidText = "", processStart = "", bootId = "", host = "", namespace = "", container, ...more] =
    mark.split("~");
  const pid = Number(pidText);
  if (!(pid > 0) || container === undefined || more.length > 0) return undefined;
  const [, , myBoot = "", myHost = "", myNamespace = "", myContainer = ""] = ownerMark(me).split("~");
  const owner: Owner = {
    name: null,
    pid,
    processStart,
    bootId,
    host,
    namespace,
    container: container || null,
  };
  const self: Owner = {
    ...owner,
    bootId: myBoot,
    host: myHost,
    namespace: myNamespace,
    container: myContainer || null,
  };
  const now = processes.identify(pid)?.startTime;
  return {
    pid,
    liveness: judgeLiveness(owner, self, now === undefined ? undefined : lastCharacters(now, 14)),
  };
}

/** The end of a start time, where clock ticks differ; spaces in the output of ps are dropped. */
function lastCharacters(text: string, count: number): string {
  return text.replaceAll(/[^A-Za-z0-9]/g, "").slice(-count);
}

/** A 32-bit FNV-1a hash in eight characters. */
function shortHash(text: string | null): string {
  if (text === null) return "";
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** The owner in its stored form. */
export function ownerFields(owner: Owner) {
  const { name, ...rest } = owner;
  return { owner: name, ...rest };
}

export function describeOwner(owner: Owner): string {
  const name = owner.name === null ? "" : `${quoteUnlessPlain(owner.name)}, `;
  return `${name}process ${owner.pid} on ${quoteUnlessPlain(owner.host)}`;
}

/** Names and hosts come from untrusted files: anything but a plain word is quoted. */
function quoteUnlessPlain(text: string): string {
  return /^[\w.:@+-]{1,80}$/.test(text) ? text : JSON.stringify(text.slice(0, 80));
}

/** The pid namespace that every Linux boots with (PROC_PID_INIT_INO). */
const INITIAL_NAMESPACE = "pid:[4026531836]";
let cachedContainer: Pick<Owner, "namespace" | "container"> | undefined;

function readContainer(): Pick<Owner, "namespace" | "container"> {
  cachedContainer ??= detectContainer();
  return cachedContainer;
}

function detectContainer(): Pick<Owner, "namespace" | "container"> {
  if (process.platform !== "linux") return { namespace: null, container: null };
  try {
    const namespace = readlinkSync("/proc/self/ns/pid");
    return { namespace, container: namespace === INITIAL_NAMESPACE ? null : rootLayer() };
  } catch {
    return { namespace: null, container: null };
  }
}

/** The upper directory of the overlay root mount belongs to one container and survives its restarts. */
function rootLayer(): string | null {
  const root = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[4] === "/");
  const upper = /upperdir=([^,\s]+)/.exec(root ?? "")?.[1];
  return upper === undefined ? null : sha256Hex(upper).slice(0, 16);
}
