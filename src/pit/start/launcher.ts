// The program that turns into a keeper. Before it execs the shell that runs keeper.sh it must become a child subreaper, and
// a shell cannot make that system call. Perl can: it takes 2 ms, where starting Node (keeper-launch.ts) takes 25 ms of CPU,
// more than the rest of a revival. Node is the fallback: without Perl, on other systems, and in the foreground, where
// Perl might print a warning about the locale.
import { existsSync } from "node:fs";
import { workerUrl } from "../../platform/worker-module.ts";

export interface Launcher {
  readonly program: string;
  /** Followed by the path of keeper.sh and its arguments. */
  readonly args: readonly string[];
  /** In addition to the agent's environment; removed again before the shell starts. */
  readonly env: Readonly<Record<string, string>>;
}

const PERL = "/usr/bin/perl";
/** The number of prctl(2). */
const PRCTL: Readonly<Record<string, number>> = { x64: 157, arm64: 167 };
const PR_SET_CHILD_SUBREAPER = 36;

/** `variables`: the names in the agent's environment. Those of Perl could change what it does. */
export function chooseLauncher(foreground: boolean, variables: readonly string[]): Launcher {
  const prctl = process.platform === "linux" ? PRCTL[process.arch] : undefined;
  const isUsable = !foreground && !variables.some((name) => name.startsWith("PERL"));
  return prctl !== undefined && isUsable && existsSync(PERL) ? perlLauncher(prctl) : nodeLauncher();
}

function perlLauncher(prctl: number): Launcher {
  const code = [
    `syscall(${prctl}, ${PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0);`,
    "delete $ENV{PERL_BADLANG};",
    'exec { "/bin/sh" } "sh", @ARGV;',
  ].join(" ");
  // Without a warning about a locale that is not installed.
  return { program: PERL, args: ["-e", code, "--"], env: { PERL_BADLANG: "0" } };
}

function nodeLauncher(): Launcher {
  const launcher = decodeURIComponent(workerUrl("keeper-launch", import.meta.url).pathname);
  return { program: process.execPath, args: ["--no-warnings", launcher], env: {} };
}
