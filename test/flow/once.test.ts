// At-most-once commands on a real disk: what is recorded, what is replayed, what is unknown, and secrets in the output.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  changeFlow,
  type OnceRequest,
  pruneFlows,
  runOnce,
  startFlow,
  type Workspace,
} from "../../src/flow/index.ts";
import { replayBytes } from "../../src/flow/once/output.ts";
import { runCommand } from "../../src/flow/once/run-command.ts";
import { type Disk, systemDisk } from "../../src/platform/disk.ts";
import { systemProcesses } from "../../src/platform/process-identity.ts";
import { createFaultyDisk } from "../../src/testing/index.ts";
import { createWorld } from "../cli/hermetic.ts";
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const SECRET = `ghp_${"a1B2".repeat(9)}`;

async function started(): Promise<{
  fixture: Fixture;
  once: (
    key: string,
    line: string,
    more?: Partial<OnceRequest>,
    workspace?: Workspace,
  ) => ReturnType<typeof runOnce>;
}> {
  const fixture = createFixture();
  const me = fixture.owner();
  await startFlow(fixture.workspace, REPORT, { me });
  return {
    fixture,
    once: (key, line, more, workspace = fixture.workspace) =>
      runOnce(workspace, {
        workflow: "report",
        key,
        command: ["/bin/sh", "-c", line],
        cwd: fixture.root,
        env: {},
        me,
        ...more,
      }),
  };
}

describe("a command killed by a signal", () => {
  it("has an unknown outcome and is run again only on request", async () => {
    const { fixture, once } = await started();
    using _ = fixture;
    const line = "echo begun >> log; kill -KILL $$";
    expect(await once("send", line)).toMatchObject({ outcome: "ran", exitCode: 137, signal: "SIGKILL" });
    for (const more of [{}, { retryFailed: true }]) {
      await expect(once("send", line, more)).rejects.toMatchObject({
        code: "FLOW_OUTCOME_UNKNOWN",
        message: expect.stringContaining("the command was killed by SIGKILL"),
        hint: expect.stringContaining("--retry-unknown"),
      });
    }
    expect(readFileSync(join(fixture.root, "log"), "utf8")).toBe("begun\n");
    expect(await once("send", "true", { retryUnknown: true })).toMatchObject({ outcome: "ran", attempt: 2 });
    expect(await once("send", line)).toMatchObject({ outcome: "replayed", exitCode: 0 });
  });

  it("on the command line: exit code 4 and a hint", () => {
    using world = createWorld();
    world.run("flow start -w report --agent a --idempotency k --step s".split(" "));
    const once = (...more: string[]) =>
      world.run([
        "flow",
        "once",
        "-w",
        "report",
        "--key",
        "send",
        ...more,
        "--",
        "sh",
        "-c",
        "kill -TERM $$",
      ]);
    expect(once().exit).toBe(143);
    const { exit, stdout, stderr } = once();
    expect({ exit, stdout }).toEqual({ exit: 4, stdout: "" });
    expect(stderr).toMatch(
      /^error: the outcome of "send" is unknown: .*SIGTERM.*\n {2}try: check .*--retry-unknown\n$/,
    );
    expect(once("--retry-unknown").exit).toBe(143);
  });
});

describe("a command whose end cannot be recorded", () => {
  it("reports the exit code once; afterwards the outcome is unknown", async () => {
    const { fixture, once } = await started();
    using _ = fixture;
    // The record of the start is the first file that is written, the record of the end the second.
    const nth = (wanted: number) => {
      let writes = 0;
      return createFaultyDisk(systemDisk, {
        code: "ENOSPC",
        at: ({ method }) => method === "write" && ++writes === wanted,
      });
    };
    const full = { root: fixture.root, machine: { ...fixture.machine, disk: nth(2) } };
    await expect(once("send", "echo sent >> log; exit 3", {}, full)).rejects.toMatchObject({
      code: "DISK_FULL",
      message: '"send" ran and exited with 3, which could not be recorded: the disk is full',
      hint: expect.stringContaining("--retry-unknown"),
      details: { exitCode: 3 },
    });
    expect(readFileSync(join(fixture.root, "log"), "utf8")).toBe("sent\n");
    const unstarted = { root: fixture.root, machine: { ...fixture.machine, disk: nth(1) } };
    await expect(once("other", "echo other >> log", {}, unstarted)).rejects.toMatchObject({
      code: "DISK_FULL",
    });
    expect(readFileSync(join(fixture.root, "log"), "utf8")).toBe("sent\n");
  });
});

describe("a flow with a running command", () => {
  it("is not pruned, even if it is done", async () => {
    const { fixture, once } = await started();
    using _ = fixture;
    const [begun, go] = [join(fixture.root, "begun"), join(fixture.root, "go")];
    const running = once("send", `touch '${begun}'; until [ -e '${go}' ]; do sleep 0.05; done; echo sent`);
    while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 10));
    const me = fixture.owner();
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
    await fixture.machine.clock.advance(1);
    const prune = () => pruneFlows(fixture.workspace, { me, keepDays: 0, dryRun: false });
    expect(await prune()).toMatchObject({ removed: [], held: [{ workflowId: "report" }] });
    writeFileSync(go, "");
    expect(await running).toMatchObject({ outcome: "ran", exitCode: 0 });
    expect(await prune()).toMatchObject({ removed: [{ workflowId: "report" }], held: [] });
  });
});

describe("secrets in the output of a command", () => {
  it.for([
    ["in text", `echo ${SECRET}`],
    ["next to bytes that are not text", `printf '\\377\\000 %s \\376' ${SECRET}`],
    [
      "at the end of a long output",
      `head -c 600000 /dev/zero | tr '\\0' 'x'; printf '\\n\\377 %s\\n' ${SECRET}`,
    ],
    ["across the middle of an output", `head -c 131060 /dev/zero | tr '\\0' ' '; echo; echo ${SECRET}`],
  ])("are not recorded: %s", async ([, line]) => {
    const { fixture, once } = await started();
    using _ = fixture;
    const { stdout, remarks, recordFile } = await once("leak", line!);
    expect(remarks).toEqual(["redacted 1 secret in the recorded output"]);
    const recorded = JSON.parse(readFileSync(recordFile, "utf8"));
    for (const output of [stdout, recorded.stdout]) {
      const bytes = replayBytes(output).toString("latin1");
      expect(bytes).toContain("[redacted: github]");
      expect(bytes).not.toContain(SECRET);
    }
    const replay = await once("leak", line!);
    expect(replay.outcome).toBe("replayed");
    expect(replayBytes(replay.stdout).equals(replayBytes(stdout))).toBe(true);
  });

  it("do not change other bytes", async () => {
    const { fixture, once } = await started();
    using _ = fixture;
    const { stdout } = await once("leak", `printf '\\377\\000 %s \\376' ${SECRET}`);
    expect(replayBytes(stdout)).toEqual(Buffer.from("\xff\0 [redacted: github] \xfe", "latin1"));
  });
});

describe("a command whose pid file cannot be written", () => {
  it("never started, so there is no outcome", async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-command-"));
    try {
      const run = (pidFile: string, line: string) =>
        runCommand({ command: ["/bin/sh", "-c", line], cwd: directory, env: {}, pidFile, stdin: "ignore" });
      const mark = join(directory, "ran");
      expect(await run(join(directory, "no-such", "pid"), `touch '${mark}'`)).toMatchObject({ began: false });
      writeFileSync(join(directory, "taken"), "void");
      expect(await run(join(directory, "taken"), `touch '${mark}'`)).toMatchObject({ began: false });
      expect(existsSync(mark)).toBe(false);
      expect(await run(join(directory, "pid"), "exit 125")).toMatchObject({ began: true, exitCode: 125 });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("has no outcome; the same call runs it after the disk recovers", async () => {
    const { fixture, once } = await started();
    using _ = fixture;
    const mark = join(fixture.root, "ran");
    /** Creates the pid file right after the claim, empty as on a full disk. */
    const disk = {
      ...systemDisk,
      fsyncDirectory(path: string) {
        systemDisk.fsyncDirectory(path);
        if (!path.endsWith("/once/report")) return;
        for (const name of readdirSync(path)) writeFileSync(join(path, name.replace("json", "1.pid")), "");
      },
    } as Disk;
    const full = { root: fixture.root, machine: { ...fixture.machine, disk } };
    await expect(once("k", `touch '${mark}'`, {}, full)).rejects.toMatchObject({
      code: "DISK_IO",
      message: expect.stringContaining('"k" was not started: its pid file cannot be written'),
    });
    expect(existsSync(mark)).toBe(false);
    expect(await once("k", `touch '${mark}'`)).toMatchObject({ outcome: "ran", exitCode: 0 });
    expect(existsSync(mark)).toBe(true);
  });
});

describe("a command whose caller was suspended when it ended", () => {
  it("is recorded with its whole output", async () => {
    using fixture = createFixture();
    const path = (name: string) => join(fixture.root, name);
    const run = (name: string, line: string, onStdout: () => void = () => {}) =>
      runCommand({
        ...{ command: ["/bin/sh", "-c", line], cwd: fixture.root, env: {}, pidFile: path(name) },
        ...{ stdin: "ignore", onStdout },
      });
    const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    /** Blocks this thread until the command has ended, so that its exit is handled together with earlier events. */
    const awaitEnd = (name: string) => {
      const pid = Number.parseInt(readFileSync(path(name), "latin1"), 10);
      while (systemProcesses.identify(pid) !== undefined) block(5);
    };
    const began = async (name: string) => {
      while (!existsSync(path(name))) await new Promise((resolve) => setImmediate(resolve));
    };
    const late = run("late", `until [ -e '${path("go")}' ]; do sleep 0.01; done; echo late`);
    await began("late");
    // Both have exited when the exit of the first is handled, and the output of the other has not been read yet.
    const first = run("first", "echo first", () => {
      writeFileSync(path("go"), "");
      awaitEnd("late");
      setImmediate(block, 1000);
    });
    await began("first");
    awaitEnd("first");
    await first;
    expect(replayBytes((await late).stdout).toString()).toBe("late\n");
  });
});
