// The keeper's script in every shell that may stand behind /bin/sh: launches, rotates, ends what is left, records.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KEEPER_SCRIPT, keeperArguments } from "../../src/pit/start/keeper-script.ts";

const SHELLS: readonly (readonly string[])[] = [
  ["/bin/sh"],
  ["dash"],
  ["bash", "--posix"],
  ["busybox", "sh"],
  ["mksh"],
  ["yash", "--posixly-correct"],
];

describe.each(SHELLS.map((words) => [words.join(" "), words] as const))("%s", (name, shell) => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lazarus-shell-"));
    mkdirSync(join(directory, "work"));
    writeFileSync(join(directory, "heartbeat.json"), '{\n  "timestamp": 5,\n  "status": "bootstrapped"\n}\n');
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const keep = (agent: string, script = KEEPER_SCRIPT): Promise<number> => {
    writeFileSync(join(directory, "keeper-0.sh"), script);
    const values = keeperArguments(
      {
        directory,
        epoch: 3,
        keeperStart: "1",
        bootId: "boot",
        mission: "m1",
        cell: directory,
        workingDirectory: join(directory, "work"),
        log: join(directory, "log"),
        logLimitBytes: 1000,
        logCount: 2,
        heartbeatFile: join(directory, "heartbeat.json"),
        heartbeatSeconds: 1,
        leftoverGraceSeconds: 1,
      },
      ["sh", "-c", agent],
    );
    const keeper = spawn(shell[0]!, [...shell.slice(1), join(directory, "keeper-0.sh"), ...values], {
      stdio: ["ignore", "ignore", "ignore"],
      // A process group of its own, as the launcher gives it.
      detached: true,
      env: { PATH: process.env.PATH, log: "mine", n: "5" },
    });
    // yash does not only tell of a death by signal: it dies of the same.
    return new Promise((resolve) =>
      keeper.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal!])),
    );
  };
  const read = (file: string) => JSON.parse(readFileSync(join(directory, file), "utf8"));

  it("keeps an agent from its first to its last", async ({ skip }) => {
    if (spawnSync(shell[0]!, [...shell.slice(1), "-c", "exit 0"]).status !== 0)
      skip(`${name} is not installed`);
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

  it("beats for an agent that signals its whole process group before anyone listens", async ({ skip }) => {
    if (spawnSync(shell[0]!, [...shell.slice(1), "-c", "exit 0"]).status !== 0)
      skip(`${name} is not installed`);
    const late = KEEPER_SCRIPT.replace("side() {\n", "side() {\n  sleep 1\n");
    expect(late).not.toBe(KEEPER_SCRIPT);
    const status = await keep(
      `trap : TERM HUP USR1 USR2; for s in TERM HUP USR1 USR2; do kill -$s 0; done; n=0
       until grep -q running ../heartbeat.json; do sleep 0.1; n=$((n + 1)); [ $n -lt 400 ] || exit 9; done; exit 7`,
      late,
    );
    expect(status).toBe(7);
  });

  it("hands on surroundings unchanged, and a death by signal as shells do", async ({ skip }) => {
    if (spawnSync(shell[0]!, [...shell.slice(1), "-c", "exit 0"]).status !== 0)
      skip(`${name} is not installed`);
    expect(await keep('pwd; umask; echo "$log $n $LAZARUS_EPOCH"; kill -9 $$')).toBe(137);
    const umask = process.umask().toString(8).padStart(4, "0");
    // mksh adds a word of its own on the death.
    const lines = readFileSync(join(directory, "log"), "utf8").split("\n").slice(0, 3);
    expect(lines).toEqual([join(directory, "work"), umask, "mine 5 3"]);
    expect(read("exit.json").status).toBe(137);
  });
});
