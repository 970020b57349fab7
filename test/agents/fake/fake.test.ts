// The fake agents themselves: they do the job once, and a killed one goes on from its transcript through its adapter.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { findAdapter } from "../../../src/agents/adapters.ts";
import { readerOf } from "../reader.ts";
import { HEADLESS } from "./headless.ts";
import { countEffects, installFakes, readRequests } from "./install.ts";

const ID = "0b0c1d2e-1111-4222-8333-444455556666";
const PATIENCE = { timeout: 5 * 60_000, interval: 20 };
const NAMES = readdirSync(new URL("profiles", import.meta.url)).map((name) => name.replace(".ts", ""));

let root: string;
let children: ChildProcess[];
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "fake-agents-")));
  children = [];
  for (const name of ["home", "work", "traces"]) mkdirSync(join(root, name));
});
afterEach(() => {
  for (const { pid } of children)
    try {
      process.kill(-pid!, "SIGKILL");
    } catch {
      // It has ended.
    }
  rmSync(root, { recursive: true, force: true });
});

interface Life {
  readonly code: number | null;
  readonly output: string;
}

function start(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): { child: ChildProcess; end: Promise<Life> } {
  const bin = installFakes(join(root, "bin"), name);
  const child = spawn(join(bin, name), args, {
    cwd: join(root, "work"),
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH,
      HOME: join(root, "home"),
      FAKE_DIRECTORY: join(root, "traces"),
      ...HEADLESS[name]!.key,
      ...env,
    },
  });
  children.push(child);
  let output = "";
  child.stdout!.on("data", (chunk) => (output += chunk));
  child.stderr!.on("data", (chunk) => (output += chunk));
  return { child, end: once(child, "close").then(([code]) => ({ code, output })) };
}

describe.each(NAMES)("fake %s", (name) => {
  const adapter = findAdapter(name)!;
  const place = () => ({ cwd: join(root, "work"), home: join(root, "home"), env: {} });
  const args = HEADLESS[name]!.args("Write the book");
  const firstLife = () => adapter.start(args, adapter.sessionIds === "chosen" ? ID : null);
  const session = () => adapter.findSessions(place(), 0, readerOf(root)).at(-1)!;
  const position = () =>
    adapter.transcript.position(
      adapter
        .sessionFiles(place(), session(), readerOf(root))
        .map(({ path, name: file }) => ({ name: file, text: readFileSync(path, "utf8") })),
    );

  test("does each step once, and its adapter sees that it has finished", async () => {
    expect(await start(name, firstLife()).end).toMatchObject({ code: 0 });
    expect(readdirSync(join(root, "work")).filter((file) => file.startsWith("chapter"))).toHaveLength(6);
    expect(Object.values(countEffects(join(root, "work", "outbox.log")))).toEqual([1, 1, 1, 1, 1, 1]);
    expect(position()).toMatchObject({ turn: 7, open: [], isFinished: true, damagedLines: 0 });
  });

  test("goes on after a kill in step 3, told what was cut off", async () => {
    const { child, end } = start(name, firstLife(), { FAKE_PAUSE: "3:effect" });
    await vi.waitUntil(() => existsSync(join(root, "traces", "paused")) || child.exitCode !== null, PATIENCE);
    // A transcript without the open call looks finished; its adapter says that this proves nothing.
    expect(position().isFinished).toBe(!adapter.exitZeroMeansFinished);
    process.kill(-child.pid!, "SIGKILL");
    await end;
    const note = "You were killed. Whether the call that writes chapter-3.md took effect is unknown.";
    const { code } = await start(name, adapter.resume(args, session(), note)!).end;
    expect(code).toBe(0);
    expect(Object.values(countEffects(join(root, "work", "outbox.log")))).toEqual([1, 1, 1, 1, 1, 1]);
    const requests = readRequests(join(root, "traces"));
    expect(requests.map(({ next }) => next)).toEqual(["1", "2", "3", "3", "4", "5", "6", "done"]);
    expect(position().isFinished).toBe(true);
  });

  test("without its transcript it says that the session is unknown", async () => {
    const { code, output } = await start(name, adapter.resume(args, ID, "Go on.")!).end;
    expect(adapter.unknownSession.exitCodes).toContain(code);
    const lines = output.split("\n");
    expect(
      adapter.unknownSession.patterns.some((each) => lines.some((line) => new RegExp(each, "i").test(line))),
    ).toBe(true);
  });

  test("an API error ends a life with the class that the adapter reads", async () => {
    const { code, output } = await start(name, firstLife(), { FAKE_FAIL: "529*1@2" }).end;
    expect(code).not.toBe(0);
    const lines = output.split("\n");
    expect(
      adapter.patterns.overload?.some((each) => lines.some((line) => new RegExp(each, "i").test(line))),
    ).toBe(true);
    expect(position().isFinished).toBe(false);
  });

  test("its hooks report the session, each call and the end", async () => {
    const command = ["/bin/sh", join(root, "hook.sh")];
    const perRun = adapter.hooks.perRun?.(command, join(root, "hooks"), {}) ?? {
      args: [],
      env: {},
      files: [],
    };
    if (perRun.args.length + perRun.files.length === 0)
      for (const { path, apply } of adapter.hooks.install(place(), command)) {
        mkdirSync(join(path, ".."), { recursive: true });
        writeFileSync(path, apply(null));
      }
    writeFileSync(join(root, "hook.sh"), `{ cat; echo; } >> ${join(root, "seen")}\n`);
    for (const { name: file, text } of perRun.files) {
      mkdirSync(join(root, "hooks", file, ".."), { recursive: true });
      writeFileSync(join(root, "hooks", file), text);
    }
    await start(name, [...perRun.args, ...firstLife()], { ...perRun.env, FAKE_STEPS: "1" }).end;
    const seen = readFileSync(join(root, "seen"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const kinds = seen
      .flatMap((input) => adapter.hooks.parse(input.hook_event_name, input))
      .map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind !== "session-end" && kind !== "prompt")).toEqual([
      "session",
      "tool-start",
      "tool-end",
      "turn-end",
    ]);
  });
});
