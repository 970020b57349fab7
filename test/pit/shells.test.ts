// keeper.sh in every supported shell.
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, type TestContext } from "vitest";
import { keeperArguments, readKeeperScript } from "../../src/pit/start/keeper-arguments.ts";
import { terminalHostFile } from "../../src/pit/terminal/pty.ts";

const KEEPER_SCRIPT = readKeeperScript();

const SHELLS: readonly (readonly string[])[] = [
  ["/bin/sh"],
  ["dash"],
  ["bash", "--posix"],
  ["busybox", "sh"],
];

/** A directory for one keeper, and how to run it there; skips the test when the shell is not installed. */
function createKeeper(shell: readonly string[], { skip, onTestFinished }: TestContext) {
  if (spawnSync(shell[0]!, [...shell.slice(1), "-c", "exit 0"]).status !== 0)
    skip(`${shell.join(" ")} is not installed`);
  const directory = mkdtempSync(join(tmpdir(), "lazarus-shell-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "work"));
  writeFileSync(
    join(directory, "heartbeat.json"),
    '{\n  "timestamp": 1700000000.5,\n  "status": "bootstrapped"\n}\n',
  );
  const keep = (
    agent: string,
    { script = KEEPER_SCRIPT, logCount = 2, hasTerminal = false } = {},
  ): Promise<number | null> => {
    writeFileSync(join(directory, "keeper-0.sh"), script);
    const args = keeperArguments(
      {
        directory,
        epoch: 3,
        bootId: "boot",
        mission: "m1",
        cell: directory,
        workingDirectory: join(directory, "work"),
        log: join(directory, "log"),
        logLimitBytes: 1000,
        logCount,
        heartbeatFile: join(directory, "heartbeat.json"),
        heartbeatSeconds: 1,
        leftoverGraceSeconds: 1,
        token: "token",
        cgroup: "",
        terminal: hasTerminal
          ? { node: process.execPath, host: terminalHostFile(), columns: 91, rows: 31 }
          : undefined,
      },
      ["sh", "-c", agent],
    );
    const keeper = spawn(shell[0]!, [...shell.slice(1), join(directory, "keeper-0.sh"), ...args], {
      stdio: ["ignore", "ignore", "ignore"],
      // In its own process group, as the launcher starts it.
      detached: true,
      env: { PATH: process.env.PATH, log: "mine", n: "5" },
    });
    return new Promise((resolve) => keeper.once("exit", resolve));
  };
  const read = (file: string) => JSON.parse(readFileSync(join(directory, file), "utf8"));
  return { directory, keep, read };
}

/** Runs the keeper's function `beat` once; `prelude` may replace the programs that it calls. */
function beatOnce(shell: readonly string[], directory: string, prelude = ""): string {
  const functions = ["now", "beat"].map((name) =>
    KEEPER_SCRIPT.slice(KEEPER_SCRIPT.indexOf(`\n${name}() {`)).replace(/\n}\n.*$/s, "\n}"),
  );
  const variables = `_dir='${directory}' _heart='${directory}/heartbeat.json' _every=1 _keeper=$$`;
  const script = [prelude, ...functions, variables, "beat", "echo alive"].join("\n");
  return spawnSync(shell[0]!, [...shell.slice(1), "-c", script], { encoding: "utf8" }).stdout;
}

describe.concurrent.each(SHELLS.map((words) => [words.join(" "), words] as const))("%s", (_, shell) => {
  it("runs an agent from start to exit", async (test) => {
    const { directory, keep, read } = createKeeper(shell, test);
    const status = await keep(
      'pwd; umask; echo "$log $n $LAZARUS_EPOCH"; head -c 3000 /dev/zero; until [ -s ../log.1 ]; do sleep 0.1; done; exit 7',
    );
    expect(status).toBe(7);
    expect(read("exit.json")).toMatchObject({ epoch: 3, status: 7, leftovers: 0 });
    expect(read("life.json")).toMatchObject({ epoch: 3, detached: true, agent: { pid: expect.any(Number) } });
    expect(read("heartbeat.json")).toMatchObject({ status: "running" });
    expect(readFileSync(join(directory, "log.1")).length).toBe(1000);
    expect(existsSync(join(directory, "log.2"))).toBe(false);
  });

  it("gives an agent a terminal, and records how it ended", async (test) => {
    const { directory, keep, read } = createKeeper(shell, test);
    const options = { hasTerminal: true };
    expect(await keep('tty; stty size; echo "$$ $n $LAZARUS_EPOCH"; exit 7', options)).toBe(7);
    const [tty, size, line] = readFileSync(join(directory, "log"), "utf8").split("\r\n");
    expect(tty).toMatch(/^\/dev\//);
    expect(size).toBe("31 91");
    expect(line).toBe(`${read("life.json").agent.pid} 5 3`);
    expect(read("exit.json")).toMatchObject({ epoch: 3, status: 7, leftovers: 0 });
    expect(await keep("kill -9 $$", options)).toBe(137);
    // What is left behind is killed; everything that was written before is in the log.
    expect(await keep("sleep 600 & trap '' HUP; seq 1 100; exit 5", options)).toBe(5);
    expect(readFileSync(join(directory, "log"), "utf8")).toMatch(/\r\n99\r\n100\r\n$/);
    expect(readdirSync(directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("rotates the log only above its limit and keeps the newest ones", async (test) => {
    const { directory, keep } = createKeeper(shell, test);
    // Three heartbeats after writing exactly the limit, the log has been checked at least once.
    const status = await keep(`
      head -c 1000 /dev/zero
      for n in 1 2 3; do
        before=$(cat ../heartbeat.json)
        until [ "$(cat ../heartbeat.json)" != "$before" ]; do sleep 0.1; done
      done
      [ ! -e ../log.1 ] || exit 9
      for word in first second third; do
        for n in 1 2 3 4; do head -c 300 /dev/zero; echo $word; done
        until grep -q $word ../log.1 && [ ! -s ../log ]; do sleep 0.1; done
      done
      exit 7`);
    expect(status).toBe(7);
    expect(readFileSync(join(directory, "log.1"), "latin1")).toContain("third");
    expect(readFileSync(join(directory, "log.2"), "latin1")).toContain("second");
    expect(existsSync(join(directory, "log.3"))).toBe(false);
  });

  it("only truncates the log when no older ones are kept", async (test) => {
    const { directory, keep } = createKeeper(shell, test);
    const status = await keep("head -c 3000 /dev/zero; until [ ! -s ../log ]; do sleep 0.1; done; exit 7", {
      logCount: 0,
    });
    expect(status).toBe(7);
    expect(existsSync(join(directory, "log.1"))).toBe(false);
  });

  it("sends heartbeats for an agent that signals its process group before the traps are set", async (test) => {
    const { keep } = createKeeper(shell, test);
    const late = KEEPER_SCRIPT.replace("side() {\n", "side() {\n  sleep 1\n");
    expect(late).not.toBe(KEEPER_SCRIPT);
    const status = await keep(
      `trap : TERM HUP USR1 USR2; for s in TERM HUP USR1 USR2; do kill -$s 0; done; n=0
       until grep -q running ../heartbeat.json; do sleep 0.1; n=$((n + 1)); [ $n -lt 400 ] || exit 9; done; exit 7`,
      { script: late },
    );
    expect(status).toBe(7);
  });

  it.for(["before", "after"])(
    "keeps a heartbeat that lands %s the keeper reads the last one",
    (when, test) => {
      const { directory } = createKeeper(shell, test);
      const durable = '{"timestamp": 1700000009.125, "status": "mine"}';
      writeFileSync(join(directory, "durable.json"), durable);
      const land = `mv -f '${directory}/durable.json' '${directory}/heartbeat.json'`;
      // The call of sed that reads the whole heartbeat.
      const sed = `sed() {
      case $* in *bootstrapped*) ${when === "before" ? land : ":"} ;; esac
      command sed "$@"
      case $* in *bootstrapped*) ${when === "after" ? land : ":"} ;; esac
    }`;
      expect(beatOnce(shell, directory, sed)).toBe("alive\n");
      expect(readFileSync(join(directory, "heartbeat.json"), "utf8")).toBe(durable);
    },
  );

  it.for([
    ["updates", "a number with a fraction", '{"timestamp": 1700000000.5, "status": "busy", "keep": [1, 2]}'],
    ["updates", "the text of another tool", '{\n    "mine": "\\u00e4ä",\n    "timestamp":1700000000}'],
    ["leaves", "a short number", '{"timestamp": 5}'],
    ["leaves", "an octal number", '{"timestamp": 0999999999}'],
    ["leaves", "a number beyond 64 bits", '{"timestamp": 99999999999999999999999}'],
    ["leaves", "null", '{"timestamp": null}'],
  ] as const)("%s the heartbeat with %s", ([what, , text], test) => {
    const { directory, read } = createKeeper(shell, test);
    writeFileSync(join(directory, "heartbeat.json"), text);
    expect(beatOnce(shell, directory)).toBe("alive\n");
    if (what === "leaves") expect(readFileSync(join(directory, "heartbeat.json"), "utf8")).toBe(text);
    else {
      const beat = read("heartbeat.json");
      expect(beat).toEqual({ ...JSON.parse(text), timestamp: expect.any(Number) });
      expect(beat.timestamp).toBeGreaterThan(1_700_000_001);
      expect(read("beat")).toBe(beat.timestamp);
    }
  });

  it("passes the environment unchanged and reports a signal as 128 + n", async (test) => {
    const { directory, keep, read } = createKeeper(shell, test);
    expect(await keep('pwd; umask; echo "$log $n $LAZARUS_EPOCH"; kill -9 $$')).toBe(137);
    const umask = process.umask().toString(8).padStart(4, "0");
    const lines = readFileSync(join(directory, "log"), "utf8").split("\n").slice(0, 3);
    expect(lines).toEqual([join(directory, "work"), umask, "mine 5 3"]);
    expect(read("exit.json").status).toBe(137);
  });
});
