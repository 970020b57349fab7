// Launches a keeper with Node, where launcher.ts does not choose Perl: becomes a child subreaper, keeps the life lock open,
// restores the signals that Node ignores, and execs the shell that runs keeper.sh. Pid, start time and lock stay the same;
// Node's memory is freed. Without subreapers in the kernel the keeper cannot follow a process that leaves its session.

import { posixSupport } from "../../platform/posix.ts";

const LIFE_LOCK_FD = 3;
const SIGPIPE = 13;
const SIGXFSZ = 25;

const support = posixSupport();
if (support.ok) {
  const { posix } = support;
  posix.keepOnExec(LIFE_LOCK_FD);
  posix.restoreSignal(SIGPIPE);
  posix.restoreSignal(SIGXFSZ);
  if (process.platform === "linux") posix.becomeSubreaper();
}
process.execve!("/bin/sh", ["sh", ...process.argv.slice(2)], process.env as Record<string, string>);
