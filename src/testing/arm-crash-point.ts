// Loaded through `node --import`: ends the process with SIGKILL at the nth passage of a crash point.
// LAZARUS_CRASH_AT=name or name#nth says where; this is the one file of the room that reads process.env, since
// nothing can be handed in before the program starts. It imports nothing and installs the hook under a global
// symbol, so that it arms sources run directly and the bundle in dist alike.

const wanted = process.env.LAZARUS_CRASH_AT;

if (wanted) {
  const match = /^([^#]+)(?:#([1-9]\d*))?$/.exec(wanted);
  // A typo that armed nothing would make a crash test pass without a crash.
  if (!match) throw new Error(`LAZARUS_CRASH_AT must be name or name#nth, and is ${JSON.stringify(wanted)}`);
  const name = match[1];
  let passagesLeft = Number(match[2] ?? 1);
  const hook = (passed: string): void => {
    if (passed !== name) return;
    passagesLeft -= 1;
    if (passagesLeft > 0) return;
    process.kill(process.pid, "SIGKILL");
    // The kernel ends us before kill returns; should it ever not, nothing may run past this line.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  (globalThis as { [key: symbol]: unknown })[Symbol.for("lazarus.crash-point")] = hook;
}

export {};
