// Loaded with `node --import`: kills the process with SIGKILL at the nth pass of a crash point, set by
// LAZARUS_CRASH_AT=name or name#nth. Reads process.env, since nothing can be injected before the program starts. It
// imports nothing and installs the hook under a global symbol, so that it works for sources and for the bundle in dist.

const wanted = process.env.LAZARUS_CRASH_AT;

if (wanted) {
  const match = /^([^#]+)(?:#([1-9]\d*))?$/.exec(wanted);
  // A typo that armed nothing would make a crash test pass without a crash.
  if (!match) throw new Error(`LAZARUS_CRASH_AT must be name or name#nth, but is ${JSON.stringify(wanted)}`);
  const name = match[1];
  let passesLeft = Number(match[2] ?? 1);
  const hook = (passed: string): void => {
    if (passed !== name) return;
    passesLeft -= 1;
    if (passesLeft > 0) return;
    process.kill(process.pid, "SIGKILL");
    // kill does not return; if it ever did, nothing may run past this line.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  (globalThis as { [key: symbol]: unknown })[Symbol.for("lazarus.crash-point")] = hook;
}

export {};
