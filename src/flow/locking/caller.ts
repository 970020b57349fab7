// Finds the process that called the command line. An agent calls `lazarus flow …` through short-lived shells
// (`sh -c "…"`), so the direct parent exits a moment later and cannot own a lock. The caller is the nearest ancestor that
// outlives its commands: not a `-c` shell, a wrapper, our own launcher or init. The choice is pure.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { quietly } from "../../platform/errors.ts";
import { readProcessFields } from "../../platform/process-identity.ts";

export interface Ancestor {
  readonly pid: number;
  readonly args: readonly string[];
}

const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox"]);
const WRAPPERS = new Set([
  "env",
  "timeout",
  "nice",
  "ionice",
  "nohup",
  "stdbuf",
  "setsid",
  "npx",
  "npm",
  "lazarus",
]);
const INITS = new Set([
  "init",
  "systemd",
  "launchd",
  "tini",
  "dumb-init",
  "docker-init",
  "catatonit",
  "s6-svscan",
  "runit",
  "sleep",
  "tail",
]);
const MAX_ANCESTORS = 12;

/** `ancestors` from the parent upwards, never empty. */
export function chooseCaller(ancestors: readonly Ancestor[]): number {
  const found = ancestors.find((ancestor) => !isShortLived(ancestor));
  // Only short-lived processes up to init: use the parent.
  if (found === undefined || isInit(found)) return ancestors[0]!.pid;
  return found.pid;
}

function isShortLived({ args }: Ancestor): boolean {
  const program = programName(args[0]);
  if (SHELLS.has(program)) return runsCommandString(args.slice(1));
  if (WRAPPERS.has(program)) return true;
  return /^(node|nodejs|bun)$/.test(program) && LAUNCHERS.test(programName(args[1]));
}

const LAUNCHERS = /^(lazarus(\.js)?|npm-cli\.js|npx-cli\.js|npm|npx)$/;
/** Shell options that take a separate value. */
const VALUED = /^([-+][oO]|--rcfile|--init-file)$/;

/** Whether `-c` is among the shell's own options, not among those of a script that it runs. */
function runsCommandString(args: readonly string[]): boolean {
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i]!;
    if (/^-[a-zA-Z]*c$/.test(arg)) return true;
    // With busybox, the name of the applet comes first.
    if (!/^[-+]/.test(arg) && !(i === 0 && SHELLS.has(arg))) return false;
    if (VALUED.test(arg)) i += 1;
  }
  return false;
}

/** A pid 1 that is not an init is an agent that runs as the first process of its container. */
function isInit({ pid, args }: Ancestor): boolean {
  const program = programName(args[0]);
  return pid <= 1 ? INITS.has(program) || SHELLS.has(program) || program === "" : program === "systemd";
}

/** The name of a login shell starts with a dash. */
function programName(path = ""): string {
  return basename(path).replace(/^-/, "");
}

/** The ancestors of this process, nearest first, up to the first that is not short-lived. */
export function readAncestors(parentPid: number): Ancestor[] {
  const ancestors: Ancestor[] = [];
  let pid = parentPid;
  while (pid > 0 && ancestors.length < MAX_ANCESTORS) {
    const found = process.platform === "linux" ? readProc(pid) : readPs(pid);
    if (found === undefined) break;
    ancestors.push({ pid, args: found.args });
    if (!isShortLived({ pid, args: found.args })) break;
    pid = found.parent;
  }
  return ancestors.length > 0 ? ancestors : [{ pid: parentPid, args: [] }];
}

function readProc(pid: number): { parent: number; args: string[] } | undefined {
  const parent = Number(readProcessFields(pid)?.[1]);
  const args = quietly(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"));
  return Number.isNaN(parent) || args === undefined ? undefined : { parent, args };
}

/** For systems without /proc. Arguments with spaces are split, which does not affect the rules above. */
function readPs(pid: number): { parent: number; args: string[] } | undefined {
  try {
    const { execFileSync } = process.getBuiltinModule("node:child_process");
    const line = execFileSync("/bin/ps", ["-o", "ppid=", "-o", "args=", "-p", String(pid)], {
      encoding: "utf8",
    });
    const [parent = "", ...args] = line.trim().split(/\s+/);
    return { parent: Number(parent), args };
  } catch {
    return undefined;
  }
}
