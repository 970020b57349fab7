// Agents with their own terminal: a user types, resizes, detaches, closes the window and reattaches, and the agent
// has a real terminal in every life.
import { spawn } from "node:child_process";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAUNCHER } from "../cli/hermetic.ts";
import { giveToPlainUser } from "../plain-user.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";
import { childrenOf, findHost, openUserTerminal, type UserTerminal } from "./user-terminal.ts";

const CTRL_C = "\x03";
const CTRL_BACKSLASH = "\x1c";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
  configure({ backoff_seconds: [0] });
});
afterEach(() => world.close());

const configure = (pit: object) => writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit }));
const open = (...words: string[]) => openUserTerminal(world, words);
const run = (script: string, ...options: string[]) => open("run", "m1", ...options, "--", "sh", "-c", script);
/** Prints the number of its life, then echoes each line. */
const ECHO =
  'echo "life $LAZARUS_EPOCH $(stty size)"; while read -r line; do echo "got $line"; done; echo end; exit 7';
const hostOf = (mission: string) => findHost(world, mission);
const isRunning = (pid: number) => existsSync(`/proc/${pid}`) && world.processState(pid) !== "Z";

it("shows what is typed and printed, and returns the agent's exit code", async () => {
  const user = run(ECHO);
  await user.see(/attached to m1 \(process \d+\); Ctrl-\\ detaches/);
  await user.see("life 1 24 80");
  user.type("a word\r");
  await user.see("got a word");
  user.type("\x04");
  await user.see("end");
  expect(await user.ended).toBe(7);
  expect(world.record("m1")).toMatchObject({ end: { epoch: 1, exit_code: 7, signal: null } });
});

it("the agent is the leader of its own terminal, and the keeper is its parent", async () => {
  const user = run(
    'tty; ps -o ppid=,sid=,tpgid=,tty= -p $$ | tr -s " "; echo "$$ $LAZARUS_MISSION $TERM"; cat',
  );
  const [, tty] = await user.see(/(\/dev\/pts\/\d+)/);
  const [, parent, session, group, device] = await user.see(/(\d+) (\d+) (\d+) (\S+)/);
  const { keeper, agent } = world.life("m1");
  await user.see(`${agent.pid} m1 xterm-256color`);
  expect(Number(parent)).toBe(keeper.pid);
  expect(Number(session)).toBe(agent.pid);
  expect(Number(group)).toBe(agent.pid);
  expect(`/dev/${device}`).toBe(tty);
  const socket = statSync(join(world.home, "run", "agents", "m1", "terminal.sock"));
  expect(socket.mode & 0o777).toBe(0o600);
  // What hosts the terminal is not part of the life.
  expect((await world.call(["status", "m1"])).exit).toBe(0);
  expect(isRunning(hostOf("m1"))).toBe(true);
});

it("passes on a new size, and the next life has it", async () => {
  const user = run(
    'echo "life $LAZARUS_EPOCH"; trap "stty size" WINCH; stty size; while :; do read -r line || :; done',
    "--revive",
    "yes",
  );
  await user.see("24 80");
  user.resize(111, 33);
  await user.see("33 111");
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await user.see("m1: killed by SIGKILL");
  await user.see(/attached to life 2 of m1 \(process \d+\)/);
  await user.see("life 2");
  await user.see("33 111");
});

describe.each([
  ["with a pit", true],
  ["without a pit", false],
])("%s", (_, withPit) => {
  it("a killed agent is revived with a terminal, and the user stays attached", async () => {
    if (withPit) await world.openPit();
    const user = run(ECHO, "--revive", "yes");
    await user.see("life 1 24 80");
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await user.see("m1: killed by SIGKILL");
    await user.see("life 2 24 80");
    user.type("again\r");
    await user.see("got again");
    user.type(CTRL_C);
    expect(await user.ended).toBe(130);
  });

  it("Ctrl-C at a program that dies from it is a stop", async () => {
    if (withPit) await world.openPit();
    const user = run("echo begun; exec sleep 600", "--revive", "yes");
    await user.see("begun");
    user.type(CTRL_C);
    await user.see("m1 is stopped (killed by SIGINT); start it again with: lazarus revive m1");
    expect(await user.ended).toBe(130);
    expect(world.state("m1")).toBe("stopped");
    expect(world.record("m1")).toMatchObject({ wish: "stopped", life: { epoch: 1 } });
  });

  it("a killed terminal host ends the life, which is revived", async () => {
    if (withPit) await world.openPit();
    const user = run(ECHO, "--revive", "yes");
    await user.see("life 1 24 80");
    process.kill(hostOf("m1"), "SIGKILL");
    await user.see("m1: killed by SIGHUP");
    await user.see("life 2 24 80");
    user.type("again\r");
    await user.see("got again");
  });
});

it("an agent that ignores SIGHUP is killed when it has lost its terminal", async () => {
  writeFileSync(
    join(world.home, "config.json"),
    JSON.stringify({ heartbeat_interval_seconds: 1, pit: { backoff_seconds: [0] } }),
  );
  const user = run(
    'trap "" HUP TERM; echo "life $LAZARUS_EPOCH"; while :; do sleep 1; done',
    "--revive",
    "yes",
  );
  await user.see("life 1");
  process.kill(hostOf("m1"), "SIGKILL");
  await user.see("life 2");
});

it("Ctrl-C goes to the agent, and a later crash does not count as a stop", async () => {
  const user = run('trap "echo interrupted" INT; echo begun; while :; do sleep 0.1; done', "--revive", "yes");
  await user.see("begun");
  user.type(CTRL_C);
  await user.see("interrupted");
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await user.see("attached to life 2");
  await user.see("begun");
});

it("Ctrl-C during the backoff is a stop", async () => {
  configure({ backoff_seconds: [600] });
  const user = run("exit 3", "--revive", "yes");
  await user.see("Ctrl-C stops it");
  user.type(CTRL_C);
  expect(await user.ended).toBe(3);
  expect(world.state("m1")).toBe("stopped");
});

it("the detach key leaves the agent running, and attach returns to its screen and keyboard", async () => {
  const user = run(ECHO);
  await user.see("no pit is running, so nothing is saved while the agent works");
  await user.see("life 1 24 80");
  user.type("first\r");
  await user.see("got first");
  user.type(CTRL_BACKSLASH);
  await user.see("detached from m1, which keeps running; reattach with: lazarus attach m1");
  await user.see("no pit is running, so a crash is handled only after one is started: lazarus pit");
  expect(await user.ended).toBe(0);
  expect(world.state("m1")).toBe("running");
  expect(world.run(["why", "m1"]).stdout).toMatch(/next\n {2}lazarus attach m1\n/);
  const again = open("attach", "m1");
  await again.see("attached to m1");
  await again.see("got first");
  again.type("second\r");
  await again.see("got second");
  again.type("\x04");
  expect(await again.ended).toBe(7);
});

it("other detach keys can be chosen, and an incomplete sequence is passed to the agent", async () => {
  const user = run(ECHO);
  await user.see("life 1");
  user.type(CTRL_BACKSLASH);
  await user.ended;
  const again = open("attach", "m1", "--detach-keys", "ctrl-p,ctrl-q");
  await again.see("Ctrl-P Ctrl-Q detaches");
  again.type("\x10x\r");
  await again.see(/got \x10x/);
  again.type("\x10");
  again.type("\x11");
  await again.see("detached from m1");
  expect(await again.ended).toBe(0);
  expect(world.run(["attach", "m1", "--detach-keys", "ctrl-"]).exit).toBe(2);
});

it("closing the terminal leaves the agent running", async () => {
  const user = run(ECHO);
  await user.see("life 1");
  const { agent } = world.life("m1");
  user.close();
  await user.ended;
  expect(isRunning(agent.pid)).toBe(true);
  const again = open("attach", "m1");
  await again.see("life 1");
  again.type("still here\r");
  await again.see("got still here");
});

it("after the terminal is closed, a pit revives the agent, and its new terminal has the same size", async () => {
  await world.openPit();
  const user = run(ECHO, "--revive", "yes");
  await user.see("life 1");
  user.close();
  await user.ended;
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await world.until("its second life", () => world.life("m1").epoch === 2);
  const again = open("attach", "m1");
  await again.see("life 2 24 80");
  again.type("hello\r");
  await again.see("got hello");
});

it("without a pit, attach takes over: it revives an agent that died in the meantime", async () => {
  const user = run(ECHO, "--revive", "yes");
  await user.see("life 1");
  user.close();
  await user.ended;
  const { keeper, agent } = world.life("m1");
  process.kill(agent.pid, "SIGKILL");
  await world.until("the end of its keeper", () => !isRunning(keeper.pid));
  const again = open("attach", "m1");
  await again.see("m1: killed by SIGKILL");
  await again.see("life 2 24 80");
  again.type("hello\r");
  await again.see("got hello");
});

it("a killed pit does not affect an attached user", async () => {
  const pit = await world.openPit();
  const user = run(ECHO, "--revive", "yes");
  await user.see("life 1");
  pit.kill("SIGKILL");
  user.type("on\r");
  await user.see("got on");
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await user.see("life 2 24 80");
});

it("two users can attach: both see and type, and the size is that of the terminal used last", async () => {
  const first = run('trap "stty size" WINCH; while :; do read -r line && echo "got $line"; done');
  await first.see("attached to m1");
  const second = openUserTerminal(world, ["attach", "m1"], { columns: 60, rows: 20 });
  await second.see("attached to m1");
  await first.see("20 60");
  second.type("from the second\r");
  await first.see("got from the second");
  await second.see("got from the second");
  first.type("from the first\r");
  await second.see("got from the first");
  await first.see("24 80");
  first.type(CTRL_BACKSLASH);
  await first.ended;
  await second.see("20 60");
});

it("a read-only viewer sees everything and changes nothing", async () => {
  const user = run('trap "stty size" WINCH; while :; do read -r line && echo "got $line"; done');
  await user.see("attached to m1");
  const watcher = openUserTerminal(world, ["attach", "m1", "--read-only"], { columns: 60, rows: 20 });
  await watcher.see("read-only");
  watcher.type("ignored\r");
  user.type("counts\r");
  await watcher.see("got counts");
  watcher.type(CTRL_BACKSLASH);
  expect(await watcher.ended).toBe(0);
  expect(watcher.output + user.output).not.toMatch(/got ignored|20 60/);
});

it("without a keyboard, attach prints the output", async () => {
  const user = run(ECHO);
  await user.see("life 1");
  const piped = spawn(process.execPath, [LAUNCHER, "attach", "m1"], { cwd: world.cwd, env: world.env });
  let text = "";
  piped.stdout.on("data", (chunk) => {
    text += chunk;
  });
  const closed = new Promise((resolve) => piped.once("close", resolve));
  await world.until("the screen", () => text.includes("life 1 24 80"));
  user.type("more\r");
  await world.until("its output", () => text.includes("got more"));
  user.type("\x04");
  expect(await closed).toBe(7);
});

it("the last output is there after the agent has exited, as text in the log too", async () => {
  const user = run('printf "\\033[31mred\\033[0m\\r\\n"; printf "10%%\\r20%%\\r\\ndone\\n"; exit 4');
  expect(await user.ended).toBe(4);
  const again = open("attach", "m1");
  await again.see(/red\r\n20%\r\ndone\r\n/);
  await again.see("m1 is not running");
  expect(await again.ended).toBe(4);
  expect((await world.call(["logs", "m1"])).stdout).toBe("red\n20%\ndone\n");
});

describe("the user's own terminal is restored", () => {
  const shell = (words: string) =>
    openUserTerminal(
      world,
      [
        "-c",
        `stty -a | grep -o -e "-*icanon"; ${words}; stty -a | grep -o -e "-*icanon"; echo over; sleep 600`,
      ],
      {
        program: "/bin/sh",
      },
    );
  const screen = String.raw`printf "\033[?1049h\033[?1000h\033[?2004h\033[?25l"; echo full; sleep 600`;

  async function expectRestored(user: UserTerminal): Promise<void> {
    await user.see(/\n?icanon/);
    const [, reset] = await user.see(/full([\s\S]*)over/);
    expect(reset).toMatch(/(?<!-)icanon/);
    for (const code of ["\x1b[?1049l", "\x1b[?1000l", "\x1b[?2004l", "\x1b[?25h"])
      expect(reset).toContain(code);
  }

  it("after detaching from a full-screen program", async () => {
    const user = shell(`lazarus run m1 -- sh -c '${screen}'`);
    await world.until("the program", () => user.output.includes("full"));
    user.type(CTRL_BACKSLASH);
    await expectRestored(user);
  });

  it("after SIGTERM to the command, which leaves the agent running", async () => {
    const user = shell(`lazarus run m1 -- sh -c '${screen}'`);
    await world.until("the program", () => user.output.includes("full"));
    const [command] = childrenOf(user.pid);
    process.kill(command!, "SIGTERM");
    await expectRestored(user);
    expect(world.state("m1")).toBe("running");
  });

  it("after the program was killed", async () => {
    const user = shell(`lazarus run m1 -- sh -c '${screen}'`);
    await world.until("the program", () => user.output.includes("full"));
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await expectRestored(user);
  });
});

it("works for an ordinary user", async () => {
  giveToPlainUser(world.directory);
  const user = openUserTerminal(world, ["run", "m1", "--revive", "yes", "--", "sh", "-c", ECHO], {
    asPlainUser: true,
  });
  await user.see("life 1 24 80");
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await user.see("life 2 24 80");
  user.type("word\r");
  await user.see("got word");
  user.close();
  await user.ended;
  const again = openUserTerminal(world, ["attach", "m1"], { asPlainUser: true });
  await again.see("got word");
  again.type(CTRL_C);
  expect(await again.ended).toBe(130);
});

it("a stop from elsewhere ends the view, and says so", async () => {
  const user = run(ECHO, "--revive", "yes");
  await user.see("life 1");
  expect((await world.call(["stop", "m1"])).exit).toBe(0);
  await user.see("m1 is stopped");
  expect(await user.ended).not.toBe(0);
  expect(world.processes()).toEqual([]);
});

it("a paused agent stays attached, and takes what was typed when it continues", async () => {
  const user = run(ECHO);
  await user.see("life 1");
  expect((await world.call(["pause", "m1"])).exit).toBe(0);
  const { agent } = world.life("m1");
  expect(world.processState(agent.pid)).toBe("T");
  expect(world.processState(hostOf("m1"))).not.toBe("T");
  user.type("while paused\r");
  await user.see("while paused");
  expect((await world.call(["revive", "m1"])).exit).toBe(0);
  await user.see("got while paused");
});

it("a killed keeper: its terminal serves the orphan until the pit has ended it, and the user gets the next life", async () => {
  const user = run(ECHO, "--revive", "yes");
  await user.see("life 1");
  const host = hostOf("m1");
  process.kill(world.life("m1").keeper.pid, "SIGKILL");
  user.type("orphan\r");
  await user.see("got orphan");
  await world.openPit();
  await user.see("life 2 24 80");
  expect(isRunning(host)).toBe(false);
  user.type("again\r");
  await user.see("got again");
});

it("the name of a mission may be longer than the path of a socket", async () => {
  const mission = `m${"x".repeat(62)}`;
  const user = open("run", mission, "--", "sh", "-c", ECHO);
  await user.see("life 1 24 80");
  expect(join(world.home, "run", "agents", mission, "terminal.sock").length).toBeGreaterThan(107);
  user.type("word\r");
  await user.see("got word");
});
