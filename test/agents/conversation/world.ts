// A mission whose agent has a hand-written Claude transcript in its own home: one user prompt, then a response with
// a tool call and its result per step.
import fs from "node:fs";
import { dirname, join } from "node:path";
import type { Adapter } from "../../../src/agents/adapter.ts";
import { claude } from "../../../src/agents/adapters/claude.ts";
import { writePlace } from "../../../src/agents/place.ts";
import { writeSession } from "../../../src/agents/session.ts";
import { agentDirectory } from "../../../src/cell/fence.ts";
import { systemMachine } from "../../../src/platform/machine.ts";
import { createWorld, type World } from "../../snapshot/restore-world.ts";

export const SESSION = "11111111-2222-4333-8444-555555555555";

/** An agent with one database per session. */
export const databaseAgent: Adapter = {
  ...claude,
  name: "databases",
  sessionFiles: (place, session, reader) =>
    reader.list(databases(place.home)).some(({ name }) => name === `${session}.db`)
      ? [{ path: join(databases(place.home), `${session}.db`), name: `${session}.db`, kind: "sqlite" }]
      : [],
  pathOf: (place, session, name) => (name === `${session}.db` ? join(databases(place.home), name) : null),
  transcript: {
    query: "SELECT n FROM turns WHERE session = ?",
    position: (files) => ({
      turn: files.flatMap(({ text }) => text.split("\n").slice(0, -1)).length,
      last: null,
      open: [],
      isFinished: false,
      damagedLines: 0,
    }),
    entries: () => [],
  },
};

const databases = (home: string) => join(home, ".databases");

export interface ConversationWorld extends World {
  readonly home: string;
  /** The transcript of a session. */
  transcript(session?: string): string;
  append(text: string, session?: string): void;
  read(session?: string): string | undefined;
  /** The files of steps, and the transcript that mentions them. */
  work(step: number): void;
}

export function createConversation(home?: string, session: string | null = SESSION): ConversationWorld {
  const world = createWorld(home);
  const userHome = join(world.directory, "home");
  const cwd = world.path("worktree");
  adopt(world.context, cwd, userHome, session);
  const project = join(userHome, ".claude", "projects", cwd.replaceAll(/[^A-Za-z0-9]/g, "-"));
  const transcript = (id = SESSION) => join(project, `${id}.jsonl`);
  const append = (text: string, id = SESSION) => {
    fs.mkdirSync(project, { recursive: true });
    fs.appendFileSync(transcript(id), text);
  };
  return {
    ...world,
    home: userHome,
    transcript,
    append,
    read: (id) => (fs.existsSync(transcript(id)) ? fs.readFileSync(transcript(id), "utf8") : undefined),
    work(step) {
      world.write(`worktree/chapter-${step}.md`, `chapter ${step}\n`);
      append(stepLines(step, cwd));
    },
  };
}

export function adopt(
  context: ConversationWorld["context"],
  cwd: string,
  home: string,
  session: string | null = SESSION,
): void {
  const directory = agentDirectory(context.config, context.mission);
  fs.mkdirSync(directory, { recursive: true });
  writePlace(systemMachine, directory, { cwd, home, env: {} });
  writeSession(systemMachine, context.cellRoot, {
    format: 1,
    adapter: "claude",
    session,
    since_epoch: 1,
    since_ms: 0,
  });
}

/** One prompt, or one step: a response, a call, its result. */
export function stepLines(step: number, cwd: string, output = "done"): string {
  const common = {
    cwd,
    sessionId: SESSION,
    timestamp: new Date(1_700_000_000_000 + step * 1000).toISOString(),
  };
  const call = {
    type: "tool_use",
    id: `toolu_${step}`,
    name: "Bash",
    input: { command: `write chapter ${step}` },
  };
  const lines = [
    {
      ...common,
      type: "assistant",
      message: { id: `msg_${step}`, model: "m", role: "assistant", stop_reason: "tool_use", content: [call] },
    },
    {
      ...common,
      type: "user",
      message: {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: `toolu_${step}`, content: output }],
      },
    },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

export function promptLine(text: string, cwd: string): string {
  return `${JSON.stringify({ cwd, sessionId: SESSION, type: "user", message: { role: "user", content: text } })}\n`;
}

/** All of a directory's files with their text. */
export function textsBelow(directory: string): Record<string, string> {
  if (!fs.existsSync(directory)) return {};
  const names = fs.readdirSync(directory, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => fs.statSync(join(directory, name)).isFile()).sort();
  return Object.fromEntries(files.map((name) => [name, fs.readFileSync(join(directory, name), "utf8")]));
}

export function replaceWhole(path: string, text: string): void {
  fs.mkdirSync(dirname(path), { recursive: true });
  fs.writeFileSync(`${path}.new`, text);
  fs.renameSync(`${path}.new`, path);
}
