// The checks of `lazarus doctor`: each one tries the real operation in a scratch file and reports what is missing and how
// to fix it. Leaves nothing behind.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { EffectiveConfig } from "../../../cell/config.ts";
import { replaceFile } from "../../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../../platform/errors.ts";
import { libdeflateGzip } from "../../../platform/libdeflate.ts";
import { tryAcquireLock } from "../../../platform/lock.ts";
import type { Machine } from "../../../platform/machine.ts";
import { type Posix, posixSupport } from "../../../platform/posix.ts";
import { openRegistry } from "../../../registry/registry.ts";
import { checkConfig } from "../../settings.ts";

export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "failed";
  readonly note: string;
  readonly hint: string | null;
}

const LOW_SPACE_BYTES = 1024 ** 3;
const MIN_GIT = [2, 30] as const;

export function examine(machine: Machine, effective: EffectiveConfig): Finding[] {
  const { config } = effective;
  const findings: Finding[] = [];
  const check = (name: string, run: () => Omit<Finding, "check" | "hint"> & { hint?: string }) => {
    try {
      const { hint, ...found } = run();
      findings.push({ check: name, ...found, hint: hint ?? null });
    } catch (error) {
      const failure = asLazarusError(error, name);
      findings.push({ check: name, status: "failed", note: failure.message, hint: failure.hint ?? null });
    }
  };
  check("node", () => ok(`Node ${process.versions.node}`));
  check("git", checkGit);
  check("libc", () => {
    const support = posixSupport();
    if (support.ok) return ok("flock, nanosecond times and xattrs are available");
    return { status: "failed", note: support.reason, hint: "npm rebuild koffi" };
  });
  for (const [name, path] of [
    ["missions root", config.missions_root],
    ["vault", config.vault_root],
    ["heartbeats", config.heartbeat_dir],
    ["run directory", config.run_dir],
  ] as const) {
    check(name, () => checkDirectory(machine, path));
  }
  check("file metadata", () => withScratch(config.missions_root, checkMetadata));
  check("locks", () => withScratch(config.run_dir, (directory) => checkLocks(machine, directory)));
  check("registry", () => {
    if (!existsSync(config.registry_file)) return ok(`${config.registry_file} (does not exist yet)`);
    using registry = openRegistry(machine, config.registry_file);
    const row = registry.database.prepare("PRAGMA quick_check").get() as Record<string, string>;
    if (Object.values(row)[0] !== "ok")
      throw new LazarusError("REGISTRY_DAMAGED", `${registry.path}: ${Object.values(row)[0]}`);
    return ok(registry.path);
  });
  check("gzip", checkGzip);
  check("clock", () => checkClock(machine, config.missions_root));
  check("config", () => {
    const warnings = checkConfig(effective);
    if (warnings.length === 0) return ok(effective.file ?? "defaults");
    return { status: "warning", note: warnings.join("; "), hint: "lazarus config" };
  });
  return findings;
}

function ok(note: string): { status: "ok"; note: string } {
  return { status: "ok", note };
}

function checkGit() {
  let text: string;
  try {
    text = execFileSync("git", ["--version"], { encoding: "utf8" }).trim();
  } catch {
    return {
      status: "warning" as const,
      note: "git is not installed: checkpoints have no git commit",
      hint: "install git",
    };
  }
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(text)?.slice(1) ?? []).map(Number);
  if (major > MIN_GIT[0] || (major === MIN_GIT[0] && minor >= MIN_GIT[1])) return ok(text);
  return {
    status: "warning" as const,
    note: `${text} is old`,
    hint: `install git ${MIN_GIT.join(".")} or newer`,
  };
}

function checkDirectory(machine: Machine, path: string) {
  return withScratch(path, (directory, place) => {
    replaceFile(machine.disk, join(directory, "probe"), "");
    const { bavail, bsize } = statfsSync(place);
    if (bavail * bsize < LOW_SPACE_BYTES) {
      return { status: "warning" as const, note: `${path}: less than 1 GiB is free`, hint: `df -h ${place}` };
    }
    if (place !== path) return ok(`${path} (does not exist yet)`);
    if (statSync(path).mode & 0o002) {
      return {
        status: "warning" as const,
        note: `${path} is world-writable`,
        hint: `chmod o-w ${path}`,
      };
    }
    return ok(path);
  });
}

/** Runs a check in a scratch directory below `path`, or below its nearest existing parent. */
function withScratch<T>(path: string, use: (directory: string, place: string) => T): T {
  let place = path;
  try {
    place = nearestExisting(path);
    const directory = mkdtempSync(join(place, ".lazarus-doctor-"));
    try {
      return use(directory, place);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  } catch (error) {
    throw asLazarusError(error, `writing in ${place}`, place);
  }
}

function nearestExisting(path: string): string {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined || dirname(path) === path) return path;
  return nearestExisting(dirname(path));
}

function checkMetadata(directory: string) {
  const support = posixSupport();
  if (!support.ok) {
    return {
      status: "warning" as const,
      note: "times have microsecond precision and xattrs are not captured",
      hint: "npm rebuild koffi",
    };
  }
  const file = join(directory, "probe");
  writeFileSync(file, "");
  const lost: string[] = [];
  const wanted = 1_234_567_890_123_456_789n;
  support.posix.setTimes(file, wanted, wanted);
  if (statSync(file, { bigint: true }).mtimeNs !== wanted) lost.push("nanosecond times");
  if (!keepsXattrs(support.posix, file)) lost.push("user xattrs");
  if (lost.length === 0) return ok("nanosecond times and user xattrs work");
  return { status: "warning" as const, note: `this file system does not support ${lost.join(" and ")}` };
}

function keepsXattrs(posix: Posix, file: string): boolean {
  try {
    posix.setXattr(file, "user.lazarus", Buffer.from("1"));
    return posix.listXattrs(file).some(({ name }) => name === "user.lazarus");
  } catch {
    return false;
  }
}

function checkLocks(machine: Machine, directory: string) {
  const path = join(directory, "lock");
  using first = tryAcquireLock(machine, path, "doctor");
  using second = tryAcquireLock(machine, path, "doctor");
  if (first !== undefined && second === undefined) return ok("kernel locks work");
  return {
    status: "failed" as const,
    note: `locks on ${dirname(path)} do not work`,
    hint: "use a local file system",
  };
}

function checkGzip() {
  if (libdeflateGzip() !== undefined) return ok("compressed by libdeflate");
  return {
    ...ok("compressed by Node's zlib; the first checkpoint of a large cell is faster with libdeflate"),
    hint: process.platform === "darwin" ? "brew install libdeflate" : "apt install libdeflate0",
  };
}

/** A clock behind the times of recent files makes every age wrong. */
function checkClock(machine: Machine, missionsRoot: string) {
  const now = machine.clock.nowMs();
  const ahead = existsSync(missionsRoot)
    ? readdirSync(missionsRoot).filter((name) => {
        const stat = lstatSync(join(missionsRoot, name), { throwIfNoEntry: false });
        return stat !== undefined && stat.mtimeMs > now + 60_000;
      })
    : [];
  if (ahead.length === 0) return ok(new Date(now).toISOString());
  return {
    status: "warning" as const,
    note: `${ahead.length} cells have modification times in the future`,
    hint: "check the clock with: date -u",
  };
}
