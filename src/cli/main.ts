// The entry point of the CLI: the only file that reads the process's arguments, environment and signals.
import { systemMachine } from "../platform/machine.ts";
import { runLine } from "./dispatch.ts";
import { processTerminal } from "./terminal.ts";

/** Handlers only when someone listens: a hot-path command neither needs nor pays for them. */
function createInterruptSignal(): () => AbortSignal {
  let controller: AbortController | undefined;
  return () => {
    if (controller === undefined) {
      controller = new AbortController();
      const interrupt = () => {
        // A second signal does not wait for manners.
        if (controller?.signal.aborted) process.exit(130);
        controller?.abort();
      };
      process.on("SIGINT", interrupt);
      process.on("SIGTERM", interrupt);
    }
    return controller.signal;
  };
}

/** Who called: the parent, or the one that the launcher names when it stands between. Not for our own children. */
function takeCallerPid(): number {
  const named = Number(process.env.LAZARUS_CALLER_PID);
  delete process.env.LAZARUS_CALLER_PID;
  return named || process.ppid;
}

/** One can stand in a directory that is gone, a deleted cell for example, and want exactly this program then. */
function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    const { PWD } = process.env;
    return PWD?.startsWith("/") ? PWD : "/";
  }
}

process.exitCode = await runLine(process.argv.slice(2), {
  machine: systemMachine,
  callerPid: takeCallerPid(),
  surroundings: { env: process.env, cwd: currentDirectory(), isRoot: process.getuid?.() === 0 },
  terminal: processTerminal,
  signal: createInterruptSignal(),
});
