// The plugin for OpenCode, loaded as OpenCode does: it sends the note of a revival, with the agent and the model of the session.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { resumeNoteFile, unsentNoteFile } from "../session.ts";
import { opencode } from "./opencode.ts";

const SESSION = "ses_e128754d1ffeNPei3MoISnGSvS";
const MODEL = { providerID: "anthropic", modelID: "claude-sonnet-4-5" };
const DATA = [
  { info: { role: "user", agent: "build", model: MODEL } },
  { info: { role: "user", agent: "plan", model: MODEL } },
  { info: { role: "assistant", agent: "other" } },
];

let directory: string;
let loaded = 0;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-opencode-"));
  writeFileSync(resumeNoteFile(directory), "You were interrupted.");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Resolves once the note would have been sent. */
async function load(resumed?: string, answer: object = {}) {
  const hooks = join(directory, "hooks");
  const { files } = opencode.hooks.perRun!(["true"], hooks, {}, resumed);
  mkdirSync(hooks, { recursive: true });
  // A module is loaded once per name.
  const file = join(hooks, `opencode-${loaded++}.mjs`);
  writeFileSync(file, files[0]!.text);
  const { Lazarus } = (await import(file)) as { Lazarus: (context: object) => Promise<object> };
  const promptAsync = vi.fn(async (_: object) => answer);
  const messages = vi.fn(async (_: object) => ({ data: DATA }));
  await Lazarus({ client: { session: { messages, promptAsync } } });
  // What the plugin does next was put into the queue before this.
  await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => setImmediate(resolve));
  return promptAsync.mock.calls;
}

it("sends the note once, to the session, as the agent that the user chose last", async () => {
  expect(await load(SESSION)).toEqual([
    [
      {
        path: { id: SESSION },
        body: { agent: "plan", model: MODEL, parts: [{ type: "text", text: "You were interrupted." }] },
      },
    ],
  ]);
  expect(readdirSync(directory).sort()).toEqual(["hooks", "resume-note.md.delivered"]);
  expect(await load(SESSION)).toEqual([]);
});

it("keeps a note that OpenCode refuses, and does not send it again", async () => {
  await load(SESSION, { error: { name: "BadRequest" } });
  expect(readFileSync(unsentNoteFile(directory), "utf8")).toBe("You were interrupted.");
  expect(await load(SESSION)).toEqual([]);
});

it("sends nothing in a life that resumes no session", async () => {
  expect(await load()).toEqual([]);
  expect(readdirSync(directory)).toContain("resume-note.md");
});
