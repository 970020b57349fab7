// A hostile agent. Every process of it logs its mission and epoch every few milliseconds, outside of everything that
// Lazarus touches, so that overlapping lives are detected. Which life misbehaves in which way follows from the seed.
//
//   node chaos-agent.mjs LOG SEED                        the agent
//   node chaos-agent.mjs LOG child MISSION EPOCH NAME    what it leaves behind
import { spawn } from "node:child_process";
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

const [log, ...rest] = process.argv.slice(2);
const isChild = rest[0] === "child";
const mission = isChild ? rest[1] : process.env.LAZARUS_MISSION;
const epoch = isChild ? rest[2] : process.env.LAZARUS_EPOCH;
const name = isChild ? rest[3] : "agent";
const beat = () => appendFileSync(log, `${mission} ${epoch} ${process.pid} ${name}\n`);
const ignoreSignals = () => {
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1", "SIGUSR2"]) process.on(signal, () => {});
};
beat();
setInterval(beat, 20);

const cell = process.env.LAZARUS_CELL ?? ".";
/** The kernel follows processes that clear their environment and leave their session only with a control group. */
const hasCgroup = () => readFileSync("/proc/self/cgroup", "latin1").includes("/lazarus-");
const leaveBehind = (script, title, env) =>
  spawn(process.execPath, [script, log, "child", mission, epoch, title], {
    detached: true,
    stdio: "ignore",
    env,
  }).unref();

const BEHAVIORS = {
  quiet() {},
  ignoresSignals: ignoreSignals,
  forks() {
    for (let n = 0; n < 2; n += 1)
      spawn(process.execPath, [process.argv[1], log, "child", mission, epoch, "forked"], { stdio: "ignore" });
  },
  orphans() {
    leaveBehind(process.argv[1], "orphan", hasCgroup() ? {} : process.env);
  },
  renames() {
    // Named like a keeper.
    const script = join(cell, "worktree", "keeper-0123456789ab.mjs");
    copyFileSync(process.argv[1], script);
    process.title = `sh ${script}`;
    leaveBehind(script, "renamed", process.env);
  },
  rewritesItsConfig() {
    const path = join(cell, "config", "cell.json");
    writeFileSync(
      path,
      JSON.stringify({
        ...JSON.parse(readFileSync(path, "utf8")),
        resume_command: ["sh", "-c", `echo "${mission} ${epoch} hijacked" >> ${log}; exec sleep 600`],
        pit: { revive: "yes", grace_seconds: 1e6, quota_patterns: ["(a+)+$"], stall_seconds: 1e9 },
      }),
    );
    writeFileSync(join(cell, "state", "session.json"), '{"session_id":"--dangerously-skip-permissions"}');
    writeFileSync(join(cell, "worktree", "lazarus.json"), '{"missions_root":"/nonexistent"}');
    console.log(`${"a".repeat(64)}!`);
  },
  fillsTheDisk() {
    // Not in the first life: the other agents are still being started.
    if (process.env.CHAOS_FILLER === undefined || epoch === "1") return;
    try {
      for (;;) appendFileSync(process.env.CHAOS_FILLER, Buffer.alloc(1 << 20, 1));
    } catch {}
  },
  floodsItsLog() {
    // A gigabyte per minute.
    const chunk = Buffer.alloc(1 << 16, 0x2e);
    setInterval(() => process.stdout.write(chunk), 4);
  },
  sendsGarbage() {
    const send = () => {
      const socket = connect(process.env.LAZARUS_SOCKET ?? "");
      socket.on("error", () => {});
      socket.end(Buffer.from(Array.from({ length: 4096 }, (_, n) => (n * 7919 + Number(epoch)) % 256)));
    };
    setInterval(send, 10);
    connect(process.env.LAZARUS_SOCKET ?? "")
      .on("error", () => {})
      .write("POST /v1/missions HTTP/1.1\r\ncontent-length: 999999999\r\n\r\n");
  },
  crashes() {
    setTimeout(() => process.kill(process.pid, "SIGSEGV"), 30);
  },
  fails() {
    setTimeout(() => {
      console.log("PASS test/rate-limit.test.ts (resets after 7 days)");
      process.exit(3);
    }, 30);
  },
};

if (isChild) ignoreSignals();
else {
  const names = Object.keys(BEHAVIORS);
  const pick = (Math.imul(Number(rest[0]) + Number(epoch), 2654435761) >>> 16) % names.length;
  BEHAVIORS[names[pick]]();
}
