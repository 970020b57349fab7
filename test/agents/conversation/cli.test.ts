// The conversation on the command line: showing the turn, printing the transcript, restoring only files or conversation.
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writePlace } from "../../../src/agents/place.ts";
import { writeSession } from "../../../src/agents/session.ts";
import { systemMachine } from "../../../src/platform/machine.ts";
import { createWorld, type World } from "../../cli/hermetic.ts";
import { promptLine, SESSION, stepLines } from "./world.ts";

let world: World;
let ids: string[];
let transcript: string;

async function runOk(line: string): Promise<string> {
  const { exit, stdout, stderr } = await world.call(line.split(" "));
  expect(exit, `lazarus ${line}: ${stderr}`).toBe(0);
  return stdout + stderr;
}

function adopt(mission: string, adapter: string, session: string, env: Record<string, string> = {}): string {
  const cell = join(world.missions, mission);
  const directory = join(world.home, "run", "agents", mission);
  fs.mkdirSync(directory, { recursive: true });
  const cwd = join(cell, "worktree");
  writePlace(systemMachine, directory, { cwd, home: world.env.HOME!, env });
  writeSession(systemMachine, cell, { format: 1, adapter, session, since_epoch: 1, since_ms: 0 });
  return cell;
}

beforeAll(async () => {
  world = createWorld();
  await runOk("init book");
  const cell = adopt("book", "claude", SESSION);
  const cwd = join(cell, "worktree");
  const project = join(world.env.HOME!, ".claude", "projects", cwd.replaceAll(/[^A-Za-z0-9]/g, "-"));
  fs.mkdirSync(project, { recursive: true });
  transcript = join(project, `${SESSION}.jsonl`);
  fs.writeFileSync(transcript, promptLine("Write a book\u001b[31m", cwd));
  for (const step of [1, 2]) {
    fs.appendFileSync(transcript, stepLines(step, cwd, "line\n".repeat(9)));
    world.write(`home/missions/book/worktree/chapter-${step}.md`, String(step));
    await runOk("checkpoint book");
  }
  const { checkpoints } = world.json("checkpoints book --json");
  ids = (checkpoints as { checkpoint_id: string }[]).map(({ checkpoint_id: id }) => id);
});
afterAll(() => world[Symbol.dispose]());

it("show, checkpoints, diff and a dry run name the turn", async () => {
  expect(await runOk(`show book ${ids[0]}`)).toMatch(
    /^conversation {2}turn 1, after Bash: write chapter 1 \(claude /m,
  );
  expect(await runOk("checkpoints book")).toContain(" turn 1, after");
  const change = "conversation: turn 1, after Bash: write chapter 1 → turn 2, after Bash: write chapter 2";
  expect(await runOk(`diff book ${ids[0]} ${ids[1]}`)).toContain(change);
  expect(await runOk(`diff book ${ids[0]}`)).toContain(change);
  expect(await runOk(`restore book ${ids[0]} --dry-run`)).toContain(
    "the conversation there: turn 1, after Bash: write chapter 1",
  );
});

it("conversation prints the transcript, now or at a checkpoint", async () => {
  const text = await runOk(`conversation book --at ${ids[0]}`);
  expect(text).toContain("user\n  Write a book\\u{1b}[31m");
  expect(text).toContain("→ Bash  write chapter 1\n");
  expect(text).toContain("… 4 more lines");
  expect(text).not.toContain("chapter 2");
  expect(await runOk("conversation book -n 2")).toContain("→ Bash  write chapter 2");
  const document = world.json(`conversation book --at ${ids[0]} --json`);
  expect(document).toMatchObject({ checkpoint_id: ids[0], adapter: "claude", session: SESSION, turn: 1 });
  expect((document.entries as { role: string }[]).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
  ]);
  expect((await world.call(["conversation", "book", "--at", "nothing"])).exit).toBe(6);
});

it("restore and undo can be limited to files or conversation", async () => {
  const steps = () => fs.readFileSync(transcript, "utf8").match(/"type":"tool_use"/g)?.length;
  expect(await runOk(`restore book ${ids[0]} --conversation-only`)).toContain(
    "the conversation goes back from turn 2, after Bash: write chapter 2 to turn 1, after Bash: write chapter 1",
  );
  expect(steps()).toBe(1);
  expect(fs.existsSync(world.path("home/missions/book/worktree/chapter-2.md"))).toBe(true);
  await runOk("undo book");
  expect(steps()).toBe(2);
  await runOk(`restore book ${ids[0]}`);
  await runOk("undo book --files-only");
  expect(steps()).toBe(1);
  expect(fs.existsSync(world.path("home/missions/book/worktree/chapter-2.md"))).toBe(true);
  expect((await world.call(["undo", "book", "--files-only", "--conversation-only"])).exit).toBe(2);
});

it("reads a database that the agent has in the cell, and a drill reads it back", async () => {
  await runOk("init code");
  const directory = join(world.missions, "code", "state", "opencode");
  fs.mkdirSync(directory, { recursive: true });
  const { opencode } = await import("../../../src/agents/adapters/opencode.ts");
  const place = { cwd: "/", home: "/", env: {} };
  const env = opencode.env!(place, directory);
  adopt("code", "opencode", "ses_0123456789abcdef", env);
  using database = new DatabaseSync(Object.values(env)[0]!);
  database.exec(
    "CREATE TABLE message (id, session_id, time_created, data); CREATE TABLE part (id, message_id, data)",
  );
  const message = JSON.stringify({ role: "assistant" });
  database.prepare("INSERT INTO message VALUES (?, ?, ?, ?)").run("m1", "ses_0123456789abcdef", 1, message);
  const part = JSON.stringify({ type: "text", text: "hello" });
  database.prepare("INSERT INTO part VALUES (?, ?, ?)").run("p1", "m1", part);
  await runOk("checkpoint code");
  expect(await runOk("show code")).toMatch(/^conversation {2}turn 1/m);
  expect(await runOk("conversation code --at latest")).toContain("hello");
  await runOk("drill code");
});

it("a conversation in a database that other sessions share: only the files go back, and every command says so", async () => {
  await runOk("init claw");
  const state = join(world.env.HOME!, ".openclaw", "agents", "main", "agent");
  fs.mkdirSync(state, { recursive: true });
  adopt("claw", "openclaw", "main");
  using database = new DatabaseSync(join(state, "openclaw-agent.sqlite"));
  database.exec("CREATE TABLE transcript_events (session_id, seq, event_json)");
  const say = (seq: number, role: string, text: string) => {
    const event = { type: "message", message: { role, content: [{ type: "text", text }] } };
    database
      .prepare("INSERT INTO transcript_events VALUES ('main', ?, ?)")
      .run(seq, JSON.stringify({ id: String(seq), ...event }));
  };
  say(1, "user", "Write a book");
  say(2, "assistant", "chapter one");
  world.write("home/missions/claw/worktree/chapter.md", "1");
  await runOk("checkpoint claw");
  const { checkpoint_id: id } = world.json("show claw --json");
  say(3, "assistant", "chapter two");
  world.write("home/missions/claw/worktree/chapter.md", "2");
  await runOk("checkpoint claw");
  expect(await runOk(`show claw ${id}`)).toMatch(
    /^conversation {2}turn 1 \(openclaw main\); only the position, without the transcript$/m,
  );
  const at = await world.call(["conversation", "claw", "--at", String(id)]);
  expect(at).toMatchObject({
    exit: 6,
    stderr: expect.stringMatching(
      /has only the position of its conversation: turn 1 .* in a database that other sessions share[\s\S]*lazarus conversation claw, to print it as it is now/,
    ),
  });
  expect(await runOk("conversation claw")).toContain("chapter two");
  const reason =
    "the conversation of openclaw is in a database that other sessions share, so it was not restored";
  expect(await runOk(`restore claw ${id} --dry-run`)).toContain(reason);
  const restored = await world.call(["restore", "claw", String(id)]);
  expect(restored).toMatchObject({ exit: 5, stderr: expect.stringContaining(reason) });
  expect(fs.readFileSync(world.path("home/missions/claw/worktree/chapter.md"), "utf8")).toBe("1");
  expect(await runOk("conversation claw")).toContain("chapter two");
});
