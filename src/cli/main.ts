// Entry point of the CLI: the only file that reads the process's arguments, environment and signals.
import { systemMachine } from "../platform/machine.ts";
import { runLine } from "./dispatch.ts";
import { processTerminal } from "./terminal.ts";

/** Installs the handlers on first use: hot-path commands do not need them. */
function createInterruptSignal(): () => AbortSignal {
  let controller: AbortController | undefined;
  return () => {
    if (controller === undefined) {
      controller = new AbortController();
      const interrupt = () => {
        // A second signal exits immediately.
        if (controller?.signal.aborted) process.exit(130);
        controller?.abort();
      };
      process.on("SIGINT", interrupt);
      process.on("SIGTERM", interrupt);
      // The terminal is gone; temporary files are still removed.
      process.on("SIGHUP", interrupt);
    }
    return controller.signal;
  };
}

/** The calling process: our parent, or the launcher's parent. The variable is not passed on to our children. */
function takeCallerPid(): number {
  const fromLauncher = Number(process.env.LAZARUS_CALLER_PID);
  delete process.env.LAZARUS_CALLER_PID;
  return fromLauncher || process.ppid;
}

/**
 * Arguments are bytes, and Node replaces those that are not UTF-8: the name of such a file could not be typed. On Linux the
 * kernel has them as they were; they get the form that paths have everywhere (path-bytes.ts).
 */
async function readArguments(): Promise<string[]> {
  const words = process.argv.slice(2);
  if (process.platform !== "linux" || !words.some((word) => word.includes("\ufffd"))) return words;
  const { readFileSync } = await import("node:fs");
  const { decodeArguments } = await import("./arguments.ts");
  return decodeArguments(readFileSync("/proc/self/cmdline"), words);
}

/** The current directory may have been deleted, for example with its cell; commands must still work then. */
function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    const { PWD } = process.env;
    // A thread cannot start without one.
    process.chdir("/");
    return PWD?.startsWith("/") ? PWD : "/";
  }
}

process.exitCode = await runLine(await readArguments(), {
  machine: systemMachine,
  callerPid: takeCallerPid(),
  surroundings: { env: process.env, cwd: currentDirectory(), isRoot: process.getuid?.() === 0 },
  terminal: processTerminal,
  signal: createInterruptSignal(),
});
