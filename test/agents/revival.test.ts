// Revival of agent CLIs, with a fake one per adapter: after a death the conversation continues where it stopped, and nothing is
// done twice. Most faults are the same for every agent and are tried with one.
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSession } from "../../src/agents/session.ts";
import { openHistory } from "../../src/effects/history.ts";
import { unknownEffects } from "../../src/effects/notes.ts";
import { reviveMission } from "../../src/pit/actions.ts";
import { viewMission } from "../../src/pit/view.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { killIfRunning } from "../pit/pit-world.ts";
import { HEADLESS } from "./fake/headless.ts";
import { type FakeRequest, readRequests } from "./fake/install.ts";
import { PROFILES } from "./fake/profiles.ts";
import { type Book, createRevivalWorld, type RevivalWorld, recordedPid } from "./revival-world.ts";

const AGENTS = Object.keys(PROFILES);
const ONCE = { 1: 1, 2: 1, 3: 1 };

let world: RevivalWorld;
beforeAll(() => {
  world = createRevivalWorld({ pit: { effects: ["publish-it"], max_revivals_per_hour: 20 } });
});
afterAll(() => world[Symbol.asyncDispose]());

const sessionOf = ({ cell }: Book) => readSession(cell)?.session ?? null;

/** Starts a book and kills it where FAKE_PAUSE says. */
async function killAt(place: string, agent: string, mission: string, env: Record<string, string> = {}) {
  const book = world.book(agent, mission, { FAKE_PAUSE: place, ...env });
  await book.start();
  killIfRunning(await book.paused());
  const record = await book.ended();
  return { book, record };
}

/** An agent killed in chapter 2 continues there. One that cannot be resumed is told so, and checks the files. */
function expectNothingTwice(book: Book, agent: string) {
  const { cannotResume } = PROFILES[agent]!;
  expect(book.effects()).toEqual(ONCE);
  if (cannotResume === undefined) {
    expect(book.why()).toContain(`resumed the conversation of ${agent} at turn`);
    expect(book.asked()).toEqual(["1", "2", "2", "3", "done"]);
  } else {
    expect(book.why()).toContain(`started over with a new conversation of ${agent}: ${cannotResume}`);
    expect(book.lastPrompt()).toContain(`could not be continued: ${cannotResume}`);
    expect(book.lastPrompt()).toMatch(/\n\nWrite the book$/);
    expect(book.asked()).toEqual(["1", "2", "1", "2", "3", "done"]);
  }
}

describe.concurrent.each(AGENTS)("%s", (agent) => {
  it("continues after a kill between an effect and its result, and repeats nothing", async () => {
    const { book, record } = await killAt("2:effect", agent, `${agent}-effect`);
    expect(record.end?.open_calls).toMatchObject([{ command: expect.stringContaining("echo 2 >>") }]);
    const before = sessionOf(book);
    expect(before).not.toBeNull();
    await book.revive();
    expect(await book.finish()).toMatchObject({
      end: { kind: "departure", open_calls: [] },
      decision: { action: "rest" },
    });
    expectNothingTwice(book, agent);
    expect(sessionOf(book) === before).toBe(PROFILES[agent]!.cannotResume === undefined);
    expect(book.lastPrompt()).toContain("was running when that life ended");
  });

  it("continues after its recorded process alone was killed while the model was thinking", async () => {
    const book = world.book(agent, `${agent}-thinking`, { FAKE_PAUSE: "2:response" });
    await book.start();
    await book.paused();
    killIfRunning(recordedPid(world, book.mission));
    expect(await book.ended()).toMatchObject({ end: { open_calls: [] } });
    await book.revive();
    expect((await book.finish()).end).toMatchObject({ kind: "departure" });
    expectNothingTwice(book, agent);
  });

  it("has not finished when SIGTERM ended it, with any exit code", async () => {
    const book = world.book(agent, `${agent}-term`, { FAKE_PAUSE: "1:response" });
    await book.start();
    process.kill(await book.paused(), "SIGTERM");
    expect(await book.ended()).toMatchObject({ end: { kind: "crash" }, decision: { action: "revive" } });
  });
});

describe("a note", () => {
  it("names the call that was cut off, which is in the effect history and in why", async () => {
    const { book, record } = await killAt("2:effect", "claude", "cut-off");
    expect(record.end?.open_calls).toMatchObject([{ tool: "Bash", marked: false, outcome: null }]);
    const unknown = unknownEffects(openHistory(systemMachine, book.cell).read());
    expect(unknown).toMatchObject([{ source: "call", where: "claude", name: "Bash", state: "unknown" }]);
    expect(book.why()).toContain("cut off: 1. Bash: echo 2 >>");
    await book.revive();
    await book.finish();
    expect(book.lastPrompt()).toContain("The life before it: killed by SIGKILL at ");
    expect(book.lastPrompt()).toMatch(/A call of "Bash" was running when that life ended\..*\n {4}echo 2 >>/);
    expect(readFileSync(join(book.cell, "artifacts/handoff.md"), "utf8")).toContain('agent claude, "Bash"');
  });

  it("starts the conversation over when the agent was killed before it wrote any", async () => {
    const book = world.book("claude", "first-second", { FAKE_PAUSE: "1:response" });
    await book.start();
    await book.paused();
    killIfRunning(recordedPid(world, book.mission));
    const first = sessionOf(book)!;
    rmSync(transcriptOf(book));
    await book.ended();
    await book.revive();
    await book.finish();
    expect(sessionOf(book)).not.toBe(first);
    expect(book.why()).toMatch(/started over with a new conversation of claude: there is no transcript/);
    expect(book.lastPrompt()).toMatch(/^\[Lazarus\][\s\S]*could not be continued[\s\S]*\n\nWrite the book$/);
    expect(book.effects()).toEqual(ONCE);
  });
});

function transcriptOf(book: Book): string {
  const project = join(world.user, ".claude/projects");
  const names = readdirSync(project, { recursive: true, encoding: "utf8" });
  return join(project, names.find((name) => name.endsWith(`${sessionOf(book)}.jsonl`))!);
}

it("a note that an earlier life did not read is not passed to an agent that the user starts", async () => {
  const book = world.book("claude", "stale-note");
  const directory = join(world.context.config.run_dir, "agents", "stale-note");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "resume-note.md"), "a note for another life");
  await book.start();
  await book.finish();
  expect(readdirSync(directory).filter((name) => name.startsWith("resume-note"))).toEqual([]);
});

describe("a CLI that takes no prompt when it resumes in a terminal", () => {
  it("gets the note from our plugin: opencode continues by itself", async () => {
    const book = world.book("opencode", "opencode-terminal", { FAKE_PAUSE: "2:effect" });
    await book.start({ command: ["opencode", "--prompt", "Write the book"] });
    killIfRunning(await book.paused());
    await book.ended();
    await book.revive();
    await book.finish();
    expect(book.effects()).toEqual(ONCE);
    expect(readRequests(book.traces)[2]!.prompt).toContain("[Lazarus] You were interrupted");
    const view = viewMission(world.context, book.mission)!;
    expect(view.waits_for_user).toBe(false);
  });

  it("waits for its user, and status and why say what to type: cline", async () => {
    const book = world.book("cline", "cline-terminal", { FAKE_PAUSE: "2:effect" });
    await book.start({ command: ["cline", "-i", "Write the book"] });
    killIfRunning(await book.paused());
    await book.ended();
    await book.revive();
    expect(viewMission(world.context, book.mission)!.waits_for_user).toBe(true);
    expect(book.why()).toContain(
      `cline shows its conversation and waits for you; to continue: lazarus attach cline-terminal, and type, for example: read ${book.cell}/artifacts/handoff.md and continue`,
    );
    expect(readFileSync(join(book.cell, "artifacts/handoff.md"), "utf8")).toContain("chapter-2.md");
    killIfRunning(recordedPid(world, book.mission));
    await book.ended();
    expect(viewMission(world.context, book.mission)!.waits_for_user).toBe(false);
  });
});

describe("hooks", () => {
  const view = ({ mission }: Book) => viewMission(world.context, mission)!;
  const SILENT = "hooks of codex do not run";

  it("that the agent does not trust are reported by status and why, and the conversation still works", async () => {
    const { book, record } = await killAt("2:effect", "codex", "untrusted", { FAKE_HASH: "more" });
    expect(existsSync(join(world.directory, "home/run/agents/untrusted/hooks.jsonl"))).toBe(false);
    expect(record.end?.open_calls).toMatchObject([{ command: expect.stringContaining("echo 2 >>") }]);
    expect(view(book).silent_hooks).toBe(true);
    expect(book.why()).toContain(SILENT);
    await book.revive();
    await book.finish();
    expectNothingTwice(book, "codex");
  });

  it("that report do not count as silent, and neither do those of a life without a response", async () => {
    const { book } = await killAt("2:effect", "codex", "trusted");
    expect(view(book).silent_hooks).toBe(false);
    expect(book.why()).not.toContain(SILENT);
    const early = world.book("codex", "no-answer", { FAKE_PAUSE: "1:response", FAKE_HASH: "more" });
    await early.start();
    await early.paused();
    expect(view(early).silent_hooks).toBe(false);
    killIfRunning(recordedPid(world, early.mission));
    await early.ended();
  });
});

describe("a failure of the provider", () => {
  it("529: is retried without being counted, without stepping back, for as long as it takes", async () => {
    const book = world.book("claude", "overload", { FAKE_FAIL: "529*3@2" });
    await book.start();
    const waits: number[] = [];
    for (let lives = 1; lives <= 3; lives += 1) {
      const { end: ended, decision, attempt, deaths } = await book.ended();
      expect(ended).toMatchObject({ class: "overload", evidence: [{ kind: "overload" }] });
      expect(decision).toMatchObject({ action: "revive", step_back_to: null });
      expect({ attempt, deaths }).toEqual({ attempt: 0, deaths: [] });
      waits.push(decision!.at_ms! - decision!.decided_ms);
      await book.revive();
    }
    expect(await book.ended()).toMatchObject({ end: { kind: "departure" }, revivals_ms: [] });
    expect(waits.map((ms) => Math.round(ms / 10_000) >= 1 && ms <= 300_000)).toEqual(waits.map(() => true));
    expect(book.effects()).toEqual(ONCE);
    // One request per life until it works: the conversation continues, and no request is repeated.
    expect(book.asked()).toEqual(["1", "2", "2", "2", "2", "3", "done"]);
  });

  it.each(AGENTS)("%s has not finished when its provider refuses", async (agent) => {
    const book = world.book(agent, `refused-${agent}`, { FAKE_FAIL: "429*1@2" });
    await book.start();
    expect(await book.ended()).toMatchObject({ end: { class: "quota" }, decision: { action: "revive" } });
  });

  it("429 without a reset time: waits a minute, then longer", async () => {
    const book = world.book("claude", "quota", { FAKE_FAIL: "429*2@2" });
    await book.start();
    for (const minutes of [1, 2]) {
      const { end: ended, decision } = await book.ended();
      expect(ended).toMatchObject({ class: "quota", quota_reset_ms: null });
      const waitMs = decision!.at_ms! - decision!.decided_ms;
      expect(Math.abs(waitMs - minutes * 60_000)).toBeLessThanOrEqual(minutes * 12_000);
      expect(book.why()).toContain("reset time unknown: retry");
      await book.revive();
    }
    expect((await book.finish()).end?.kind).toBe("departure");
    expect(book.asked()).toEqual(["1", "2", "2", "2", "3", "done"]);
  });

  it.each([
    ["401", "auth", { FAKE_FAIL: "401*1@2" }],
    ["no key", "auth", { ANTHROPIC_API_KEY: "" }],
    ["context too long", "permanent", { FAKE_FAIL: "400*1@2" }],
  ])("%s: asks, and makes no further request", async (name, failure, env) => {
    const book = world.book("claude", name.replaceAll(" ", "-"), env);
    await book.start();
    expect(await book.ended()).toMatchObject({ end: { class: failure }, decision: { action: "ask" } });
    const asked = book.asked();
    expect((await book.finish()).decision?.action).toBe("ask");
    expect(book.asked()).toEqual(asked);
  });
});

describe("a session", () => {
  it("that the CLI does not have is replaced once, and then the usual limits apply", async () => {
    const book = world.book("claude", "unknown", { FAKE_PAUSE: "2:file" });
    const real = readFileSync(join(world.bin, "claude"), "utf8").split("\n")[1];
    const own = join(world.directory, "forgetful");
    const refusal = 'echo "No conversation found with session ID: x" >&2; exit 1';
    world.install(own, "claude", `case "$*" in *--resume*) ${refusal};; esac\n${real}`);
    await book.start({ command: [join(own, "claude"), "-p", "Write the book"] });
    killIfRunning(await book.paused());
    await book.ended();
    const before = sessionOf(book);
    await book.revive();
    expect((await book.ended()).end?.evidence).toMatchObject([{ kind: "unknown-session" }]);
    await book.revive();
    expect((await book.finish()).end?.kind).toBe("departure");
    expect(sessionOf(book)).not.toBe(before);
    expect(book.why()).toContain(
      `started over with a new conversation of claude: claude does not have the session`,
    );
  });

  it("that the user names and the CLI does not have is not replaced without asking", async () => {
    const book = world.book("claude", "mistyped");
    const nobody = "0b0c1d2e-9999-4222-8333-444455556666";
    await book.start({ command: ["claude", "-p", "go on", "--resume", nobody] });
    const { end: ended, decision } = await book.ended();
    expect(ended?.evidence).toMatchObject([
      { kind: "unknown-session", says: expect.stringContaining(nobody) },
    ]);
    expect(decision).toMatchObject({
      action: "ask",
      reason: expect.stringContaining("before its conversation"),
    });
    expect(book.asked()).toEqual([]);
    // By a name: Lazarus assumes that this is the newest session of the directory.
    const { book: other } = await killAt("2:file", "claude", "misnamed");
    await other.start({ replace: true, command: ["claude", "-p", "go on", "--resume", "nonsense"] });
    expect(await other.ended()).toMatchObject({
      end: { turn: 2, evidence: [{ kind: "unknown-session" }] },
      decision: { action: "ask" },
    });
  });

  it("is not resumed while another process has it, which is named by its pid", async () => {
    const { book } = await killAt("2:call", "claude", "in-use");
    const own = join(world.directory, "sleeper");
    world.install(own, "claude", "exec 3<&0; read line <&3");
    const other = spawn(join(own, "claude"), ["--resume", sessionOf(book)!], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    try {
      await new Promise((resolve) => other.once("spawn", resolve));
      world.forward(60_000);
      const { decision } = await book.ended();
      expect(decision).toMatchObject({ action: "ask" });
      expect(decision!.reason).toContain(`is in use by process ${other.pid} (`);
      const second = world.book("claude", "in-use-2");
      const command = ["claude", "-p", "go on", "--resume", sessionOf(book)!];
      await expect(second.start({ command })).rejects.toMatchObject({ code: "SESSION_IN_USE" });
    } finally {
      other.kill("SIGKILL");
      await new Promise((resolve) => other.once("exit", resolve));
    }
    await reviveMission(world.context, book.mission);
    await book.finish();
    expect(book.effects()).toEqual(ONCE);
  });

  it("is not resumed while a process in its directory may have it, whose title hides its arguments", async () => {
    const { book } = await killAt("2:call", "pi", "titled");
    const code = "process.title = 'pi'; console.log(); process.stdin.resume()";
    const other = spawn(process.execPath, ["-e", code, "--", "--session", sessionOf(book)!], {
      stdio: ["pipe", "pipe", "ignore"],
      cwd: join(book.cell, "worktree"),
    });
    try {
      await new Promise((resolve) => other.stdout.once("data", resolve));
      world.forward(60_000);
      expect((await book.ended()).decision).toMatchObject({
        action: "ask",
        reason: expect.stringContaining(`is in use by process ${other.pid} (pi)`),
      });
    } finally {
      other.kill("SIGKILL");
      await new Promise((resolve) => other.once("exit", resolve));
    }
  });

  it.each([
    ["qwen", "qwen --yolo -p inner"],
    ["gemini", "gemini --yolo -p inner"],
    ["opencode", "opencode run inner"],
    ["claude", "gemini --yolo -p inner"],
  ])("of an agent that %s starts in a tool does not become the mission's", async (agent, FAKE_NESTED) => {
    const env = { ...HEADLESS.gemini!.key, FAKE_NESTED };
    const inner = FAKE_NESTED.split(" ")[0]!;
    world.book(inner, `nested-${agent}-${inner}`);
    const { book, record } = await killAt("2:effect", agent, `nesting-${agent}`, env);
    expect(readRequests(join(book.traces, "nested")).map(({ next }) => next)).toEqual(["1", "done"]);
    expect(record.end?.open_calls).toMatchObject([{ command: expect.stringContaining("echo 2 >>") }]);
    const [{ session }] = readRequests(book.traces) as [FakeRequest];
    expect(sessionOf(book)).toBe(session);
    await book.revive();
    expect((await book.finish()).end?.kind).toBe("departure");
    expectNothingTwice(book, agent);
  });

  it("belongs to one mission", async () => {
    const { book } = await killAt("2:call", "claude", "owner");
    const other = world.book("claude", "other");
    const command = ["claude", "-p", "go on", "--resume", sessionOf(book)!];
    await expect(other.start({ command })).rejects.toThrow("is in use by mission owner");
  });
});

function replaceByLink(path: string): void {
  renameSync(path, `${path}.elsewhere`);
  symlinkSync(`${path}.elsewhere`, path);
}

function replaceByDirectory(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

describe("a transcript", () => {
  it("whose last line is cut off, with a damaged line and lines of a newer version, is resumed", async () => {
    const book = world.book("claude", "damaged", { FAKE_PAUSE: "2:file" });
    await book.start();
    killIfRunning(await book.paused());
    // Before the crash checkpoint, so that the copy is the same.
    const path = transcriptOf(book);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    lines.splice(2, 0, "\0\0 not json", '{"type":"quantum-state","version":"9.0.0"}');
    writeFileSync(path, lines.join("\n"));
    truncateSync(path, Buffer.byteLength(lines.join("\n")) - 20);
    await book.ended();
    await book.revive();
    expect((await book.finish()).end?.kind).toBe("departure");
    expect(book.effects()).toEqual(ONCE);
    expect(book.lastPrompt()).toContain("1 damaged line of the transcript is missing here");
  });

  it.each([
    ["deleted", (path: string) => rmSync(path)],
    ["emptied", (path: string) => truncateSync(path, 0)],
    ["truncated", (path: string) => truncateSync(path, readFileSync(path).length >> 1)],
    ["damaged", (path: string) => writeFileSync(path, readFileSync(path, "utf8").replace("{", "\0"))],
    ["overwritten", (path: string) => writeFileSync(path, "not a conversation\n".repeat(9))],
    ["replaced by a link", replaceByLink],
    ["replaced by a directory", replaceByDirectory],
  ])("that was %s is put back from its copy in the cell", async (damage, change) => {
    const { book } = await killAt("2:file", "claude", `transcript-${damage.replaceAll(" ", "-")}`);
    change(transcriptOf(book));
    await book.revive();
    await book.finish();
    expect(book.why()).toMatch(/resumed the conversation of claude at turn 2 .* put back from its copy/);
    expect(book.asked()).toEqual(["1", "2", "2", "3", "done"]);
    expect(book.effects()).toEqual(ONCE);
  });

  it("that was truncated when its agent died is put back from an earlier copy", async () => {
    const book = world.book("claude", "power-cut", { FAKE_PAUSE: "3:response" });
    await book.start();
    const pid = await book.paused();
    await takeCheckpoint(world.context.openMission(book.mission), { reason: "manual" });
    killIfRunning(pid);
    truncateSync(transcriptOf(book), 0);
    await book.ended();
    await book.revive();
    await book.finish();
    expect(book.asked()).toEqual(["1", "2", "3", "3", "done"]);
    expect(book.effects()).toEqual(ONCE);
  });

  it("is restored with the files, and brought back by an undo", async () => {
    const book = world.book("claude", "back", { FAKE_PAUSE: "1:result" });
    await book.start();
    await book.paused();
    const mission = world.context.openMission(book.mission);
    const { ref } = await takeCheckpoint(mission, { reason: "manual" });
    writeFileSync(join(book.traces, "go"), "");
    await book.ended();
    expect(book.asked()).toEqual(["1", "2", "3", "done"]);
    await restoreCell(mission, { checkpoint: ref.id });
    const files = () => readdirSync(join(book.cell, "worktree")).filter((name) => name.startsWith("chapter"));
    expect(files()).toHaveLength(1);
    await undoRestore(mission);
    expect(files()).toHaveLength(3);
    await restoreCell(mission, { checkpoint: ref.id });
    await reviveMission(world.context, book.mission);
    await book.finish();
    expect(book.asked()).toEqual(["1", "2", "3", "done", "2", "3", "done"]);
    expect(files()).toHaveLength(3);
    expect(book.lastPrompt()).toContain(`Files and conversation were restored to checkpoint ${ref.id}`);
  });
});

it("the MCP server is passed to every life", async () => {
  const book = world.book("claude", "tools", { FAKE_PAUSE: "2:effect" });
  await book.start({ mcp: true });
  killIfRunning(await book.paused());
  await book.ended();
  await book.revive();
  const { life } = book.record();
  expect(life).toMatchObject({ epoch: 2, conversation: { how: "resume" } });
  const servers = life!.command.find((word) => word.startsWith("--mcp-config="));
  expect(JSON.parse(servers!.slice("--mcp-config=".length))).toMatchObject({
    mcpServers: { lazarus: { args: [expect.stringContaining("lazarus.js"), "mcp"] } },
  });
  await book.finish();
});

it("a cut-off call that matches the user's rules asks, and the answer reaches the model", async () => {
  const { book, record } = await killAt("2:effect", "claude", "publish", { FAKE_OUTBOX: "publish-it" });
  expect(record).toMatchObject({ end: { open_calls: [{ marked: true }] }, decision: { action: "ask" } });
  expect(book.why()).toContain("lazarus revive publish --call not-done");
  await expect(reviveMission(world.context, book.mission)).rejects.toMatchObject({ code: "CALL_UNANSWERED" });
  await reviveMission(world.context, book.mission, { calls: [{ index: null, outcome: "done" }] });
  await book.finish();
  expect(book.lastPrompt()).toContain("the user says that it took effect: do not repeat it");
  expect(unknownEffects(openHistory(systemMachine, book.cell).read())).toEqual([]);
});
