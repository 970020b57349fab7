import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { readHookLines, summarizeHooks } from "./hook-lines.ts";
import {
  type CallTexts,
  forInstalledHooks,
  installedCalls,
  reportedSession,
  silentInRun,
  toolReports,
} from "./tool-reports.ts";

const CLAUDE: CallTexts = { session: "session_id", ended: { lastId: "tool_use_id" } };
const GEMINI: CallTexts = { session: "session_id", ended: { output: "tool_response" } };
const CLINE: CallTexts = { session: "rootSessionId", ended: { id: '"tool_result":{"id":"' } };
const INTERVAL_SECONDS = 30;

let directory: string;
let heartbeat: string;
let hook: readonly string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-it's ended-"));
  mkdirSync(join(directory, "hooks"));
  heartbeat = join(directory, "heartbeat.json");
  writeFileSync(heartbeat, "{}");
  hook = ["/bin/sh", "-c", '{ printf %s "$1"; cat; } > "$0"', join(directory, "seen")];
  setSession("s-1");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function setSession(session: string, epoch = 3) {
  const { path, text } = reportedSession(directory, epoch, INTERVAL_SECONDS, session);
  writeFileSync(path, text);
}

function run(command: readonly string[], input: string, env: Record<string, string> = {}) {
  const seen = join(directory, "seen");
  rmSync(seen, { force: true });
  const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
    input,
    env: { ...process.env, LAZARUS_EPOCH: "3", LAZARUS_HEARTBEAT: heartbeat, ...env },
    encoding: "utf8",
  });
  expect([status, stdout, stderr]).toEqual([0, "", ""]);
  return existsSync(seen) ? readFileSync(seen, "utf8") : undefined;
}

/** What `lazarus hook` would have read; undefined when the script did not call it. */
function report(
  moment: "started" | "ended" | "prompted",
  input: string,
  { agent = "claude", texts = CLAUDE, event = [] as string[], env = {}, hasScript = true } = {},
): string | undefined {
  const reports = toolReports(agent, hook, join(directory, "hooks"), texts);
  if (hasScript) writeFileSync(reports.path, reports.file.text);
  return run([...reports[moment], ...event], input, env);
}

const COMMON = { session_id: "s-1", cwd: "/app" };
const start = (command: string, id = "1") =>
  JSON.stringify({
    ...COMMON,
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command },
    tool_use_id: id,
  });
const ending = (response: unknown, id: string) =>
  JSON.stringify({
    ...COMMON,
    hook_event_name: "PostToolUse",
    tool_name: "Bash",
    tool_input: { command: "make" },
    tool_response: response,
    tool_use_id: id,
    duration_ms: 331,
  });
const lines = () => readHookLines(directory, 3);
const call = (id: string) => ({ id, tool: "Bash", summary: "make", command: "make" });

describe("the start of a call", () => {
  it("is recorded as the CLI passed it, readable only by the user", () => {
    const before = Date.now();
    expect(report("started", start('make "a b" \\ ü %s'))).toBeUndefined();
    const command = 'make "a b" \\ ü %s';
    expect(lines()).toMatchObject([
      { kind: "tool-start", call: { id: "1", tool: "Bash", summary: command, command } },
    ]);
    expect(lines()[0]!.at_ms).toBeGreaterThan(before - 2000);
    expect(lines()[0]!.at_ms).toBeLessThanOrEqual(Date.now());
    expect(statSync(join(directory, "hooks.jsonl")).mode & 0o777).toBe(0o600);
  });

  it("stays open until the call is reported to end", () => {
    report("started", start("make", "1"));
    report("started", start("make", "2"));
    report("ended", ending("ok", "1"));
    expect(summarizeHooks(lines()).openCalls).toEqual([call("2")]);
  });

  it("goes to lazarus hook before a call that may delete many files", () => {
    for (const command of ["rm -rf build", "cd a\nrm -r b", "git reset --hard", "x; sed -i s/a/b/ y"])
      expect(report("started", start(command))).toBe(start(command));
    expect(lines()).toEqual([]);
  });

  it("goes to lazarus hook when a heartbeat is due, or was never written", () => {
    const old = Date.now() / 1000 - INTERVAL_SECONDS;
    utimesSync(heartbeat, old, old);
    expect(report("started", start("make"))).toBe(start("make"));
    rmSync(heartbeat);
    expect(report("started", start("make"))).toBe(start("make"));
    expect(lines()).toEqual([]);
  });

  it("goes to lazarus hook unless this life has reported this session: an agent within the agent has another", () => {
    const passed = () => report("started", start("make"));
    setSession("s-2");
    expect(passed()).toBe(start("make"));
    setSession("s-1", 2);
    expect(passed()).toBe(start("make"));
    rmSync(join(directory, "hooks", "session"));
    expect(passed()).toBe(start("make"));
    expect(lines()).toEqual([]);
  });

  it("goes to lazarus hook when it is long, on several lines, not an object, or without a life", () => {
    const inputs = [
      "",
      "not json",
      start("x".repeat(4000)),
      JSON.stringify(JSON.parse(start("make")), null, 2),
      JSON.stringify([JSON.parse(start("make"))]),
      JSON.stringify({ note: '"session_id":"s-1"' }),
    ];
    for (const input of inputs) expect(report("started", input)).toBe(input);
    for (const epoch of ["", '3,"x":1'])
      expect(report("started", start("make"), { env: { LAZARUS_EPOCH: epoch } })).toBe(start("make"));
    expect(lines()).toEqual([]);
  });

  it("goes to lazarus hook when the script is gone, instead of blocking the call", () => {
    const event = ["PreToolUse"];
    expect(report("started", start("make"), { event, hasScript: false })).toBe(`PreToolUse${start("make")}`);
    rmSync(join(directory, "hooks"), { recursive: true });
    expect(report("prompted", "{}", { hasScript: false })).toBe("{}");
  });

  it("goes to lazarus hook when it cannot be synced, and its end then ends both", () => {
    const bin = join(directory, "bin");
    mkdirSync(bin);
    for (const name of ["sh", "cat", "date", "tail"]) symlinkSync(`/bin/${name}`, join(bin, name));
    expect(report("started", start("make"), { env: { PATH: bin } })).toBe(start("make"));
    report("started", start("make"));
    report("started", start("make", "2"));
    expect(summarizeHooks(lines()).openCalls).toEqual([call("1"), call("1"), call("2")]);
    report("ended", ending("ok", "1"));
    expect(summarizeHooks(lines()).openCalls).toEqual([call("2")]);
  });

  it("is recorded after a line that was torn, by a full disk for example", () => {
    writeFileSync(join(directory, "hooks.jsonl"), '{"at_ms":1,"epoch":3,"kind":"tool-st');
    expect(report("started", start("make"))).toBeUndefined();
    expect(lines()).toMatchObject([{ kind: "tool-start", call: { id: "1" } }]);
  });

  it("is written in one piece, so that calls at the same time do not mix", () => {
    const command = "y".repeat(3000);
    const reports = toolReports("claude", hook, join(directory, "hooks"), CLAUDE);
    writeFileSync(reports.path, reports.file.text);
    writeFileSync(join(directory, "input"), start(command));
    const loop = `for i in 1 2 3 4 5 6; do for j in 1 2 3; do /bin/sh "$1" started < "$2"; done & done; wait`;
    run(["/bin/sh", "-c", loop, "sh", reports.path, join(directory, "input")], "");
    expect(lines().map((line) => line.kind === "tool-start" && line.call.command)).toEqual(
      Array.from({ length: 18 }, () => command),
    );
  });
});

describe("the end of a call", () => {
  it("is found by its id after any output", () => {
    const hostile = [
      '"tool_use_id":"other"',
      "x\n\0\\",
      "ü".repeat(100_000),
      "'; exit 1; '",
      "%s%n$(exit 1)",
    ];
    for (const [index, text] of hostile.entries()) {
      expect(report("ended", ending({ stdout: text }, `id-${index}`))).toBeUndefined();
      expect(lines().at(-1)).toMatchObject({ kind: "tool-end", call: { id: `id-${index}` } });
    }
    expect(lines()).toHaveLength(hostile.length);
  });

  it("is found when the user's environment has variables that the script uses", () => {
    const env = { input: "1", text: "2", id: "3", lines: "4", event: "5", now: "6" };
    expect(report("ended", ending("x".repeat(300_000), "1"), { env })).toBeUndefined();
    expect(lines()).toMatchObject([{ kind: "tool-end", call: { id: "1" } }]);
  });

  it("is found by an id before the output", () => {
    const input = (text: string) =>
      JSON.stringify({ hookName: "tool_result", tool_result: { id: "c-1", name: "run", output: text } });
    const cline = { agent: "cline", texts: CLINE, event: ["PostToolUse"] };
    expect(report("ended", input('"tool_result":{"id":"c-2"'.repeat(200)), cline)).toBeUndefined();
    expect(lines()).toMatchObject([{ kind: "tool-end", call: { id: "c-1" } }]);
  });

  it("is found by the call itself where it has no id, before any output", () => {
    const gemini = { agent: "gemini", texts: GEMINI };
    const call = (event: string, command: string, more = {}) =>
      JSON.stringify({
        ...COMMON,
        hook_event_name: event,
        tool_name: "shell",
        tool_input: { command },
        ...more,
      });
    report("started", call("BeforeTool", "make a"), gemini);
    report("started", call("BeforeTool", "make b"), gemini);
    for (const text of ["ü".repeat(100_000), ',"tool_response":', '"'])
      expect(
        report("ended", call("AfterTool", "make b", { tool_response: { llmContent: text } }), gemini),
      ).toBeUndefined();
    expect(summarizeHooks(lines().slice(0, 3)).openCalls).toMatchObject([{ id: null, command: "make a" }]);
    expect(lines().slice(2)).toHaveLength(3);
    const other = call("AfterTool", "make a", { session_id: "s-2", tool_response: "" });
    expect(report("ended", other, gemini)).toBe(other);
    const long = call("AfterTool", "z".repeat(5000), { tool_response: "" });
    expect(report("ended", long, gemini)).toBe(long);
  });

  it("goes to lazarus hook when the script does not understand it", () => {
    const inputs = [
      "",
      "not json",
      ending("ok", ""),
      ending("ok", 'a"b'),
      ending("ok", "$(id)"),
      JSON.stringify({ tool_use_id: "1", tool_response: "x".repeat(1000) }),
      JSON.stringify({ tool_use_id: "1" }, null, 2),
    ];
    for (const input of inputs) expect(report("ended", input)).toBe(input);
    for (const epoch of ["", '3,"x":1'])
      expect(report("ended", ending("ok", "1"), { env: { LAZARUS_EPOCH: epoch } })).toBe(ending("ok", "1"));
    expect(lines()).toEqual([]);
  });

  it("goes to lazarus hook, with the name of the event, when it cannot be written", () => {
    mkdirSync(join(directory, "hooks.jsonl"));
    expect(report("ended", ending("ok", "1"))).toBe(ending("ok", "1"));
    expect(report("ended", "{}", { event: ["PostToolUse"] })).toBe("PostToolUse{}");
  });
});

it("a prompt is recorded as the CLI passed it, and passed to lazarus hook when it is long", () => {
  const prompt = (text: string) =>
    JSON.stringify({ ...COMMON, hook_event_name: "UserPromptSubmit", prompt: text });
  expect(report("prompted", prompt("rm -rf all"))).toBeUndefined();
  expect(lines()).toMatchObject([{ kind: "prompt" }]);
  expect(report("prompted", prompt("x".repeat(4000)))).toBe(prompt("x".repeat(4000)));
});

describe("an installed hook", () => {
  test("runs its command outside of a run, and nothing in a run that passes hooks", () => {
    expect(run([...silentInRun(hook), "Stop"], "{}")).toBe("Stop{}");
    for (const command of Object.values(installedCalls(hook)))
      expect(run([...command, "PreToolUse"], "{}")).toBe("PreToolUse{}");
    for (const command of [silentInRun(hook), ...Object.values(installedCalls(hook))])
      expect(run([...command, "PreToolUse"], "{}", { LAZARUS_HOOKS: "run" })).toBeUndefined();
  });

  test("reports a call through the script in a run that passes none", () => {
    const reports = toolReports("claude", hook, join(directory, "hooks"), CLAUDE);
    const { args, env, installedEnv, files } = forInstalledHooks(reports);
    expect([args, env]).toEqual([[], {}]);
    for (const { name, text } of files) writeFileSync(join(directory, "hooks", name), text);
    const installed = installedCalls(["false"]);
    expect(run([...installed.started, "PreToolUse"], start("make"), installedEnv)).toBeUndefined();
    expect(run([...installed.ended, "PostToolUse"], ending("ok", "1"), installedEnv)).toBeUndefined();
    expect(lines().map(({ kind }) => kind)).toEqual(["tool-start", "tool-end"]);
    expect(run([...silentInRun(hook), "Stop"], "{}", installedEnv)).toBe("Stop{}");
    // The environment of a process that the agent left behind outlives the script.
    rmSync(reports.path);
    for (const command of Object.values(installedCalls(hook)))
      expect(run([...command, "PreToolUse"], "{}", installedEnv)).toBe("PreToolUse{}");
  });
});
