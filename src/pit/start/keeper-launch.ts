// The first moments of a keeper, in Node: becomes a child subreaper, keeps the life lock open, gives back the signals
// that Node ignores, and turns into the shell that runs the keeper's script. Same pid, same start time, same lock; what
// Node itself cost is gone. Where the kernel has no subreapers the keeper works without, and cannot follow a process
// that leaves its session.

import { posixSupport } from "../../platform/posix.ts";
import { systemProcesses } from "../../platform/process-identity.ts";

const LIFE_LOCK_FD = 3;
const SIGPIPE = 13;
const SIGXFSZ = 25;
/** Where keeperArguments puts them. */
const KEEPER_START = 2;
const BOOT_ID = 3;

const [script = "", ...values] = process.argv.slice(2);
const support = posixSupport();
if (support.ok) {
  const { posix } = support;
  posix.keepOnExec(LIFE_LOCK_FD);
  posix.restoreSignal(SIGPIPE);
  posix.restoreSignal(SIGXFSZ);
  if (process.platform === "linux") posix.becomeSubreaper();
}
const { startTime, bootId } = systemProcesses.self();
values[KEEPER_START] = startTime;
values[BOOT_ID] = bootId;
process.execve!("/bin/sh", ["sh", script, ...values], process.env as Record<string, string>);
