import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readHookLines, summarizeHooks } from "./hook-lines.ts";
import { toolEnded } from "./tool-ended.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-it's ended-"));
  mkdirSync(join(directory, "hooks"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** What `lazarus hook` would have read; undefined when the script did not call it. */
function end(input: string, epoch: string | undefined = "3"): string | undefined {
  const seen = join(directory, "seen");
  rmSync(seen, { force: true });
  const hook = ["/bin/sh", "-c", 'cat > "$0"', seen];
  const { command, file } = toolEnded(hook, join(directory, "hooks"), "tool_use_id");
  writeFileSync(join(directory, "hooks", file.name), file.text);
  const env = { ...process.env, LAZARUS_EPOCH: epoch };
  const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
    input,
    env,
    encoding: "utf8",
  });
  expect([status, stdout, stderr]).toEqual([0, "", ""]);
  return existsSync(seen) ? readFileSync(seen, "utf8") : undefined;
}

const report = (response: unknown, id: string) =>
  JSON.stringify({
    hook_event_name: "PostToolUse",
    tool_name: "Bash",
    tool_input: { command: "make" },
    tool_response: response,
    tool_use_id: id,
    duration_ms: 331,
  });
const lines = () => readHookLines(directory, 3);
const call = (id: string) => ({ id, tool: "Bash", summary: "make", command: "make" });

it("records the end of the call, readable only by the user", () => {
  const before = Date.now();
  expect(end(report({ stdout: "ok" }, "toolu_01-a"))).toBeUndefined();
  expect(lines()).toMatchObject([{ kind: "tool-end", call: { id: "toolu_01-a" } }]);
  expect(lines()[0]!.at_ms).toBeGreaterThan(before - 2000);
  expect(statSync(join(directory, "hooks.jsonl")).mode & 0o777).toBe(0o600);
});

it("closes the call that was reported to start", () => {
  const started = ["1", "2"].map((id) => ({
    at_ms: 1,
    epoch: 3,
    kind: "tool-start" as const,
    call: call(id),
  }));
  end(report("ok", "1"));
  expect(summarizeHooks([...started, ...lines()]).openCalls).toEqual([call("2")]);
});

it("finds the id after any output", () => {
  const hostile = ['"tool_use_id":"other"', "x\n\0\\", "ü".repeat(100_000), "'; exit 1; '", "%s%n$(exit 1)"];
  for (const [index, text] of hostile.entries()) {
    expect(end(report({ stdout: text }, `id-${index}`))).toBeUndefined();
    expect(lines().at(-1)).toMatchObject({ call: { id: `id-${index}` } });
  }
  expect(lines()).toHaveLength(hostile.length);
});

it("passes what it does not understand to lazarus hook, unchanged", () => {
  const inputs = [
    "",
    "not json",
    report("ok", ""),
    report("ok", 'a"b'),
    report("ok", "$(id)"),
    JSON.stringify({ tool_use_id: "1", tool_response: "x".repeat(1000) }),
    JSON.stringify({ tool_use_id: "1" }, null, 2),
  ];
  for (const input of inputs) expect(end(input)).toBe(input);
  expect(end(report("ok", "1"), "")).toBe(report("ok", "1"));
  expect(end(report("ok", "1"), '3,"x":1')).toBe(report("ok", "1"));
  expect(lines()).toEqual([]);
});

it("passes the event to lazarus hook when it cannot write", () => {
  mkdirSync(join(directory, "hooks.jsonl"));
  expect(end(report("ok", "1"))).toBe(report("ok", "1"));
});
