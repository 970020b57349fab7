// Real programs in an agent's terminal, more output than a viewer can take, and more input than an agent reads at once.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";
import { findHost, openUserTerminal } from "./user-terminal.ts";

const CTRL_BACKSLASH = "\x1c";
const MIB = 1024 * 1024;

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const open = (...words: string[]) => openUserTerminal(world, words);
const run = (script: string) => open("run", "m1", "--", "sh", "-c", script);
const inWorktree = (name: string) => join(world.missions, "m1", "worktree", name);
const isInstalled = (program: string) => spawnSync("which", [program]).status === 0;

it("a viewer that reads nothing neither blocks the agent nor grows the host, and is repainted", async () => {
  // 48 MiB, far more than all buffers together.
  const flood = `yes 0123456789abcdef0123456789abcdef0123456789abcdef | head -c ${48 * MIB}`;
  const user = run(`echo begun; read -r go; ${flood}; echo over; touch over; cat`);
  await user.see("begun");
  user.type("go\r");
  user.pause();
  const host = findHost(world, "m1");
  await world.until("the end of the flood", () => existsSync(inWorktree("over")));
  const memory = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${host}/status`, "latin1"))![1]) / 1024;
  expect(memory, "MiB").toBeLessThan(250);
  user.resume();
  await user.see(/over\r\n/);
  user.type("and on\r");
  await user.see("and on");
});

it("a paste of 100 KB arrives completely, even at a program that is slow to read it", async () => {
  const user = run("stty raw -echo; echo ready; sleep 0.5; head -c 100000 | md5sum; sleep 600");
  await user.see("ready");
  const text = "0123456789".repeat(10_000);
  user.type(text);
  const [expected] = execFileSync("md5sum", { input: text, encoding: "utf8" }).split(" ");
  await user.see(expected!);
});

it("output arrives as it was written: a newline alone does not return to the first column", async () => {
  const user = run("stty -opost; printf 'one\\ntwo\\r\\nthree'; sleep 600");
  await user.see("one\ntwo\r\nthree");
});

it("a character that is cut in two arrives as one", async () => {
  const user = run("stty -echo; printf '<\\303'; read -r go; printf '\\251>'; sleep 600");
  await world.until("the first half", () => user.output.includes("<"));
  user.type("go\r");
  await user.see("<é>");
});

it("vim: alternate screen, detach, repaint in another terminal, save", async ({ skip }) => {
  if (!isInstalled("vim")) skip("vim is not installed");
  const user = open("run", "m1", "--", "vim", "-u", "NONE", "-N", "-i", "NONE", "note.txt");
  await user.see("\x1b[?1049h");
  user.type("ihello from vim\x1b");
  await user.see("hello from vim");
  user.type(CTRL_BACKSLASH);
  await user.see("\x1b[?1049l");
  await user.ended;
  const again = openUserTerminal(world, ["attach", "m1"], { columns: 100, rows: 30 });
  await again.see("\x1b[?1049h");
  await again.see("hello from vim");
  again.type(":wq\r");
  expect(await again.ended).toBe(0);
  expect(readFileSync(inWorktree("note.txt"), "utf8")).toBe("hello from vim\n");
});

it("tmux: killing its server leaves the agent running, and the next session shows the same screen", async ({
  skip,
}) => {
  if (!isInstalled("tmux")) skip("tmux is not installed");
  const env = { ...world.env, SHELL: "/bin/sh", TERM: "xterm-256color", TMUX_TMPDIR: world.directory };
  // The second session has its own server: one that was told to exit may still accept connections.
  const server =
    (name: string) =>
    (...words: string[]) =>
      execFileSync("tmux", ["-L", name, "-f", "/dev/null", ...words], {
        env,
        cwd: world.cwd,
        encoding: "utf8",
      });
  const [first, second] = [server("first"), server("second")];
  const size = ["-x", "90", "-y", "25"];
  const screen = (tmux: typeof first) => tmux("capture-pane", "-p", "-t", "s");
  const script =
    'printf "\\033[2J\\033[5;10Hframed\\033[7;1H"; while read -r line; do echo "got $line"; done';
  try {
    first("new-session", "-d", "-s", "s", ...size, "lazarus", "run", "m1", "--", "sh", "-c", script);
    await world.until("the screen", () => /^ {9}framed$/m.test(screen(first)));
    first("send-keys", "-t", "s", "one", "Enter");
    await world.until("its answer", () => screen(first).includes("got one"));
    first("kill-server");
    expect(world.state("m1")).toBe("running");
    second("new-session", "-d", "-s", "s", ...size, "lazarus", "attach", "m1");
    await world.until("the same screen", () => /^ {9}framed\n[\s\S]*got one$/m.test(screen(second)));
    second("send-keys", "-t", "s", "two", "Enter");
    await world.until("its answer", () => screen(second).includes("got two"));
  } finally {
    for (const name of ["first", "second"]) spawnSync("tmux", ["-L", name, "kill-server"], { env });
  }
});

it("tmux itself runs in an agent's terminal", async ({ skip }) => {
  if (!isInstalled("tmux")) skip("tmux is not installed");
  const user = open(
    "run",
    "m1",
    "--env",
    `TMUX_TMPDIR=${world.directory}`,
    // The login shell of a system user exits immediately, and so would the session.
    "--env",
    "SHELL=/bin/sh",
    "--",
    "tmux",
    "-L",
    "inner",
    "-f",
    "/dev/null",
    "new-session",
    "cat",
  );
  await user.see("\x1b[?1049h");
  user.type("inside\r");
  // Once as it is typed, and once by cat.
  await user.see(/inside[\s\S]*inside/);
  user.type("\x04");
  expect(await user.ended).toBe(0);
});
