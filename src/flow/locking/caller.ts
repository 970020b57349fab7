// Who called the command line. An agent calls `lazarus flow …` through short-lived shells (`sh -c "…"`), so the direct
// parent is often dead a moment later and would own nothing. The caller is the nearest ancestor that outlives its
// commands: not a `-c` shell, not a wrapper, not our own launcher, and not the machine's init. The choice is pure.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
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
const MOST_ANCESTORS = 12;

/** `ancestors` from the parent upwards, never empty. */
export function chooseCaller(ancestors: readonly Ancestor[]): number {
  const found = ancestors.find((ancestor) => !isPassing(ancestor));
  // Nothing but passing processes up to init: the nearest is all there is to hold on to.
  if (found === undefined || isInit(found)) return ancestors[0]!.pid;
  return found.pid;
}

function isPassing({ args }: Ancestor): boolean {
  const program = programName(args[0]);
  if (SHELLS.has(program)) return runsOneLine(args.slice(1));
  if (WRAPPERS.has(program)) return true;
  return /^(node|nodejs|bun)$/.test(program) && LAUNCHERS.test(programName(args[1]));
}

const LAUNCHERS = /^(lazarus(\.js)?|npm-cli\.js|npx-cli\.js|npm|npx)$/;
/** Options of shells whose value is a word of its own. */
const VALUED = /^([-+][oO]|--rcfile|--init-file)$/;

/** `-c` among a shell's own options, not among those of a script that it runs. */
function runsOneLine(args: readonly string[]): boolean {
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i]!;
    if (/^-[a-zA-Z]*c$/.test(arg)) return true;
    // busybox names its shell first.
    if (!/^[-+]/.test(arg) && !(i === 0 && SHELLS.has(arg))) return false;
    if (VALUED.test(arg)) i += 1;
  }
  return false;
}

/** A pid 1 that is no init is an agent that runs as its container's first process. */
function isInit({ pid, args }: Ancestor): boolean {
  const program = programName(args[0]);
  return pid <= 1 ? INITS.has(program) || SHELLS.has(program) || program === "" : program === "systemd";
}

/** Login shells begin with a dash. */
function programName(path = ""): string {
  return basename(path).replace(/^-/, "");
}

/** The processes above this one, nearest first. */
export function readAncestors(parentPid: number): Ancestor[] {
  const ancestors: Ancestor[] = [];
  let pid = parentPid;
  while (pid > 0 && ancestors.length < MOST_ANCESTORS) {
    const seen = process.platform === "linux" ? readProc(pid) : askPs(pid);
    if (seen === undefined) break;
    ancestors.push({ pid, args: seen.args });
    if (!isPassing({ pid, args: seen.args })) break;
    pid = seen.parent;
  }
  return ancestors.length > 0 ? ancestors : [{ pid: parentPid, args: [] }];
}

function readProc(pid: number): { parent: number; args: string[] } | undefined {
  try {
    const parent = Number(readProcessFields(pid)?.[1]);
    if (Number.isNaN(parent)) return undefined;
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return { parent, args };
  } catch {
    return undefined;
  }
}

/** Systems without /proc. Arguments with spaces come apart, which the rules above can bear. */
function askPs(pid: number): { parent: number; args: string[] } | undefined {
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
