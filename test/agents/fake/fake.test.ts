// The fake agents themselves: they do the job once, and a killed one continues from its transcript through its adapter.
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
import { readPosition } from "../../../src/pit/conversation/life-report.ts";
import { HEADLESS } from "./headless.ts";
import { countEffects, installFakes, readRequests } from "./install.ts";
import type { Moment } from "./profile.ts";
import { PROFILES } from "./profiles.ts";

const ID = "0b0c1d2e-1111-4222-8333-444455556666";
const WAIT = { timeout: 5 * 60_000, interval: 20 };

let root: string;
let children: ChildProcess[];
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "fake-agents-")));
  children = [];
  for (const name of ["home", "work", "traces", "state"]) mkdirSync(join(root, name));
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
      ...findAdapter(name)!.env?.({ cwd: "", home: "", env: {} }, join(root, "state")),
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

/** What hooks report during a life. An agent may have no event for some of these moments. */
const REPORTED: readonly (readonly [string, Moment])[] = [
  ["session", { kind: "session", resumed: false }],
  ["tool-start", { kind: "before-tool", call: { id: "1", command: "x" } }],
  ["tool-end", { kind: "after-tool", call: { id: "1", command: "x" }, text: "" }],
  ["turn-end", { kind: "done", text: "" }],
];

describe.each(Object.keys(PROFILES))("fake %s", (name) => {
  const adapter = findAdapter(name)!;
  const profile = PROFILES[name]!;
  const place = () => {
    const bare = { cwd: join(root, "work"), home: join(root, "home"), env: {} };
    return { ...bare, env: adapter.env?.(bare, join(root, "state")) ?? {} };
  };
  const args = HEADLESS[name]!.args("Write the book");
  const firstLife = () => adapter.start(args, adapter.sessionIds === "chosen" ? ID : null);
  const session = () => readRequests(join(root, "traces")).at(-1)!.session;
  const position = () => readPosition(adapter, place(), session())!;

  test("does each step once, and its adapter reports that it has finished", async () => {
    expect(await start(name, firstLife()).end).toMatchObject({ code: 0 });
    expect(readdirSync(join(root, "work")).filter((file) => file.startsWith("chapter"))).toHaveLength(6);
    expect(Object.values(countEffects(join(root, "work", "outbox.log")))).toEqual([1, 1, 1, 1, 1, 1]);
    expect(position()).toMatchObject({ turn: 7, open: [], isFinished: true, damagedLines: 0 });
  });

  test("continues after a kill in step 3, with a note about the cut-off call", async () => {
    const { child, end } = start(name, firstLife(), { FAKE_PAUSE: "3:effect" });
    await vi.waitUntil(() => existsSync(join(root, "traces", "paused")) || child.exitCode !== null, WAIT);
    // A transcript without the open call looks finished; its adapter does not accept that as proof.
    expect(position().isFinished).toBe(!adapter.exitZeroMeansFinished);
    process.kill(-child.pid!, "SIGKILL");
    await end;
    const note = "You were killed. Whether the call that writes chapter-3.md took effect is unknown.";
    const resumed = adapter.resume(args, session(), note);
    expect(resumed === null).toBe(profile.cannotResume !== undefined);
    if (resumed === null) return;
    expect(await start(name, resumed).end).toMatchObject({ code: 0 });
    expect(Object.values(countEffects(join(root, "work", "outbox.log")))).toEqual([1, 1, 1, 1, 1, 1]);
    const requests = readRequests(join(root, "traces"));
    expect(requests.map(({ next }) => next)).toEqual(["1", "2", "3", "3", "4", "5", "6", "done"]);
    expect(position().isFinished).toBe(true);
  });

  test("without its transcript it reports an unknown session, or starts a new one", async () => {
    if (profile.cannotResume !== undefined || profile.unknownSession === null) {
      expect(adapter.unknownSession.exitCodes).toHaveLength(profile.unknownSession === null ? 0 : 1);
      return;
    }
    const { code, output } = await start(name, adapter.resume(args, profile.newId?.() ?? ID, "Go on.")!).end;
    expect(adapter.unknownSession.exitCodes).toContain(code);
    const lines = output.split("\n");
    expect(
      adapter.unknownSession.patterns.some((each) => lines.some((line) => new RegExp(each, "i").test(line))),
    ).toBe(true);
  });

  test("an API error ends a life, and its adapter recognizes the class of the failure", async () => {
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
    if (perRun.args.length + Object.keys(perRun.env).length === 0)
      for (const { path, mode, apply } of adapter.hooks.install(place(), command)) {
        mkdirSync(join(path, ".."), { recursive: true });
        writeFileSync(path, apply(null), { mode: mode ?? 0o600 });
      }
    writeFileSync(join(root, "seen"), "");
    writeFileSync(join(root, "hook.sh"), `{ printf '%s\\t' "$1"; cat; echo; } >> ${join(root, "seen")}\n`);
    for (const { name: file, text } of perRun.files) {
      mkdirSync(join(root, "hooks", file, ".."), { recursive: true });
      writeFileSync(join(root, "hooks", file), text);
    }
    await start(name, [...perRun.args, ...firstLife()], { ...perRun.env, FAKE_STEPS: "1" }).end;
    const kinds = readFileSync(join(root, "seen"), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .flatMap((line) => {
        const [event, input] = [line.slice(0, line.indexOf("\t")), line.slice(line.indexOf("\t") + 1)];
        const parsed = JSON.parse(input);
        return adapter.hooks.parse(event || (parsed.hook_event_name ?? ""), parsed);
      })
      .map(({ kind }) => kind);
    const here = { id: ID, path: "", cwd: "" };
    expect(kinds.filter((kind) => kind !== "session-end" && kind !== "prompt")).toEqual(
      REPORTED.filter(([, moment]) => profile.events(moment, here).length > 0).map(([kind]) => kind),
    );
  });
});
