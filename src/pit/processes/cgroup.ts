// The control group (v2) of a life, where this user may create one: as root, or in a subtree that a service manager
// delegated. The kernel tracks its members even if they change their names, sessions and environments.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { quietly } from "../../platform/errors.ts";

const PREFIX = "lazarus-";

/** A new group next to the others of this pit; undefined where none can be created. */
export function createCgroup(token: string): string | undefined {
  const base = baseGroup();
  if (base === undefined) return undefined;
  const path = join(base, `${PREFIX}${token}`);
  try {
    mkdirSync(path);
  } catch {
    return undefined;
  }
  // Older kernels cannot kill a whole group.
  if (existsSync(join(path, "cgroup.kill"))) return path;
  removeCgroup(path);
  return undefined;
}

/** Our own group. If an agent runs this code, the group that its own life's group is in. */
function baseGroup(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const own = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
    const mount = findMount(readFileSync("/proc/self/mountinfo", "utf8"));
    if (own === undefined || mount === undefined) return undefined;
    return join(mount, own.split(`/${PREFIX}`)[0]!);
  } catch {
    return undefined;
  }
}

/** Where the whole tree of this namespace is mounted; a mount of a part of it cannot be related to /proc/self/cgroup. */
export function findMount(mountinfo: string): string | undefined {
  for (const line of mountinfo.split("\n")) {
    const [, , , root, target, ...rest] = line.split(" ");
    if (rest[rest.indexOf("-") + 1] === "cgroup2" && root === "/") return target;
  }
  return undefined;
}

/** The members of a group and of the groups in it. */
export function cgroupProcesses(path: string): number[] {
  return walk(path).flatMap((group) => {
    const text = quietly(() => readFileSync(join(group, "cgroup.procs"), "latin1")) ?? "";
    return text.split("\n").map(Number).filter(Boolean);
  });
}

/** SIGKILL to every member at once, so that none can fork in between. */
export function killCgroup(path: string): void {
  try {
    // biome-ignore lint/plugin: a control file of the kernel, nothing that must survive.
    writeFileSync(join(path, "cgroup.kill"), "1");
  } catch {
    // The group is gone, and so are its members.
  }
}

/** Has no effect while a member is alive. */
export function removeCgroup(path: string): void {
  for (const group of walk(path).reverse()) {
    try {
      rmdirSync(group);
    } catch {}
  }
}

/** A start creates the group before a process joins it; on a busy machine that takes seconds. */
const SWEEP_AGE_MS = 600_000;
const NAME = /^lazarus-[0-9a-f]{32}$/;

/**
 * Removes empty groups that were left behind: by a start that was killed before it was recorded, or by a home
 * that was deleted. Other pits have their groups here too, so a young one stays.
 */
export function sweepCgroups(nowMs: number, base: string | undefined = baseGroup()): void {
  if (base === undefined) return;
  for (const path of listGroups(base).map((name) => join(base, name))) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || nowMs - stat.mtimeMs < SWEEP_AGE_MS) continue;
    if (cgroupProcesses(path).length === 0) removeCgroup(path);
  }
}

function listGroups(base: string): string[] {
  return quietly(() => readdirSync(base).filter((name) => NAME.test(name))) ?? [];
}

/** A group and all groups in it, parents first. */
function walk(path: string): string[] {
  try {
    const inner = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [path, ...inner.flatMap(({ name }) => walk(join(path, name)))];
  } catch {
    return [];
  }
}
