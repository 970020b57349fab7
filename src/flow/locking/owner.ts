// Who holds something in a flow's directory, and whether that someone can still be there. A pid alone is reused, so an
// owner is pid + start time + boot, on a host, in a pid namespace. The verdict is a pure function; only `selfOwner`
// and `ownerOf` look at the machine.
import { readFileSync, readlinkSync } from "node:fs";
import { type Processes, systemProcesses } from "../../platform/process-identity.ts";
import { sha256Hex } from "../../platform/sha256.ts";

export interface Owner {
  /** A name given by hand (`--owner`), which outlives processes; null when only the process counts. */
  readonly name: string | null;
  readonly pid: number;
  readonly processStart: string;
  readonly bootId: string;
  readonly host: string;
  /** The kernel's number of the pid namespace; pids mean nothing across two of them. Null where there is none. */
  readonly namespace: string | null;
  /** What a container keeps over a restart (its root layer), hashed; null outside containers. */
  readonly container: string | null;
}

/** `elsewhere`: on a machine or in a container whose processes cannot be seen from here. */
export type Liveness = "alive" | "dead" | "elsewhere";

/** Whether `owner` lives, as seen by `me`, given who has its pid now (`startTime` undefined for nobody). */
export function judgeLiveness(owner: Owner, me: Owner, startTime: string | undefined): Liveness {
  if (owner.host !== me.host) return "elsewhere";
  if (owner.bootId !== me.bootId) return "dead";
  if (owner.namespace !== me.namespace) {
    // The same container after a restart has a new pid namespace and its old root layer: everyone in it died.
    return owner.container !== null && owner.container === me.container ? "dead" : "elsewhere";
  }
  return startTime === owner.processStart ? "alive" : "dead";
}

export function livenessOf(processes: Processes, owner: Owner, me: Owner): Liveness {
  return judgeLiveness(owner, me, processes.identify(owner.pid)?.startTime);
}

/** Whether the two are one: the same name given by hand, or the same process. */
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
  // An empty name, from an empty variable say, would make everyone the same owner.
  const name = givenName || null;
  // A real process never becomes another one; asking the kernel again would be a tenth of a library update.
  if (processes === systemProcesses && cachedSelf !== undefined) return { ...cachedSelf, name };
  const { pid, startTime, bootId } = processes.self();
  const self = { name, pid, processStart: startTime, bootId, host: processes.hostName(), ...place() };
  if (processes === systemProcesses) cachedSelf = self;
  return self;
}

/** Another process as an owner; undefined when there is none with that pid. */
export function ownerOf(processes: Processes, pid: number, name: string | null = null): Owner | undefined {
  const identity = processes.identify(pid);
  if (identity === undefined) return undefined;
  const { startTime, bootId } = identity;
  return { name: name || null, pid, processStart: startTime, bootId, host: processes.hostName(), ...place() };
}

/** Reads an owner back from JSON; undefined for anything that is not one. */
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
 * The same in at most 59 characters, which a file system keeps in a symbolic link's own inode: a third of the cost of
 * a longer one. Host, namespace and container are only compared, so a few bits of each are enough.
 */
export function ownerMark(owner: Owner): string {
  const { pid, processStart, bootId, host, namespace, container } = owner;
  return [
    pid,
    short(processStart, 14),
    bootId.slice(0, 8),
    brief(host),
    brief(namespace),
    brief(container),
  ].join("~");
}

/** Whether the one with this mark can still be there, as seen by `me`; undefined for a text that is no mark. */
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
  const seen: Owner = {
    name: null,
    pid,
    processStart,
    bootId,
    host,
    namespace,
    container: container || null,
  };
  const here: Owner = {
    ...seen,
    bootId: myBoot,
    host: myHost,
    namespace: myNamespace,
    container: myContainer || null,
  };
  const now = processes.identify(pid)?.startTime;
  return { pid, liveness: judgeLiveness(seen, here, now === undefined ? undefined : short(now, 14)) };
}

/** The end, where clock ticks differ; words of other systems lose their spaces. */
function short(text: string, most: number): string {
  return text.replaceAll(/[^A-Za-z0-9]/g, "").slice(-most);
}

/** Eight characters that differ when the texts do, but for one chance in four billion (FNV-1a). */
function brief(text: string | null): string {
  if (text === null) return "";
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** As it is stored. */
export function ownerFields(owner: Owner) {
  const { name, ...rest } = owner;
  return { owner: name, ...rest };
}

export function describeOwner(owner: Owner): string {
  const name = owner.name === null ? "" : `${plainly(owner.name)}, `;
  return `${name}process ${owner.pid} on ${plainly(owner.host)}`;
}

/** Names and hosts come from files that strangers can write: what is more than a word is quoted. */
function plainly(text: string): string {
  return /^[\w.:@+-]{1,80}$/.test(text) ? text : JSON.stringify(text.slice(0, 80));
}

/** The pid namespace that every Linux boots with (PROC_PID_INIT_INO). */
const INITIAL_NAMESPACE = "pid:[4026531836]";
let cachedPlace: Pick<Owner, "namespace" | "container"> | undefined;

function place(): Pick<Owner, "namespace" | "container"> {
  cachedPlace ??= readPlace();
  return cachedPlace;
}

function readPlace(): Pick<Owner, "namespace" | "container"> {
  if (process.platform !== "linux") return { namespace: null, container: null };
  try {
    const namespace = readlinkSync("/proc/self/ns/pid");
    return { namespace, container: namespace === INITIAL_NAMESPACE ? null : rootLayer() };
  } catch {
    return { namespace: null, container: null };
  }
}

/** Overlay mounts name their upper directory, which belongs to one container and stays over its restarts. */
function rootLayer(): string | null {
  const root = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[4] === "/");
  const upper = /upperdir=([^,\s]+)/.exec(root ?? "")?.[1];
  return upper === undefined ? null : sha256Hex(upper).slice(0, 16);
}
