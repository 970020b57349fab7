// Symbolic links on the way to a conversation, as dotfile managers make them. Those that were there when the user started the
// agent are followed, for every adapter; one that an agent makes is not, and the checkpoint says so.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Place } from "../../../src/agents/adapter.ts";
import { claude } from "../../../src/agents/adapters/claude.ts";
import { BUILT_IN } from "../../../src/agents/adapters.ts";
import { createSessionReader, openOwn, readRange } from "../../../src/agents/conversation/source.ts";
import { trustLinks } from "../../../src/agents/conversation/trust-links.ts";
import { readPlace, writePlace } from "../../../src/agents/place.ts";
import { agentDirectory } from "../../../src/cell/fence.ts";
import { systemMachine } from "../../../src/platform/machine.ts";
import { takeCheckpoint } from "../../../src/snapshot/operations/checkpoint.ts";
import { readConversation } from "../../../src/snapshot/operations/read-conversation.ts";
import { restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../../src/snapshot/operations/undo.ts";
import { type AdapterCases, PLACE } from "../cases/case.ts";
import { PROFILES } from "../fake/profiles.ts";
import { createRevivalWorld, type RevivalWorld } from "../revival-world.ts";
import { type ConversationWorld, createConversation, promptLine, stepLines, textsBelow } from "./world.ts";

function link(path: string, elsewhere: string): void {
  fs.mkdirSync(dirname(elsewhere), { recursive: true });
  fs.renameSync(path, elsewhere);
  fs.symlinkSync(elsewhere, path);
}

describe.each(BUILT_IN.map((adapter) => [adapter.name, adapter] as const))("%s", (name, adapter) => {
  let root: string;
  let place: Place;
  let cases: AdapterCases;
  beforeEach(async () => {
    ({ cases } = (await import(`../cases/${name}.ts`)) as { cases: AdapterCases });
    root = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "lazarus-links-"));
    place = { ...PLACE, home: join(root, PLACE.home) };
    const paths = Object.keys(cases.disk);
    for (const [path, { text = "{}\n" }] of Object.entries(cases.disk)) {
      if (paths.some((other) => other.startsWith(`${path}/`))) continue;
      fs.mkdirSync(dirname(join(root, path)), { recursive: true });
      fs.writeFileSync(join(root, path), text);
    }
  });
  afterEach(() => fs.rmSync(root, { recursive: true }));

  const filesIn = (where: Place) => {
    const reader = createSessionReader(adapter, where);
    const files = adapter.sessionFiles(where, cases.session, reader);
    const texts = files.map(({ path, name: file }) => {
      using source = openOwn(where, path);
      return [file, source && readRange(source.fd, 0, source.stat.size).toString()];
    });
    return { texts, refused: reader.refused };
  };

  it("a link at any place on the way is followed if it was there at the start; otherwise it is reported", () => {
    const plain = filesIn(place);
    expect(plain.texts).toHaveLength(cases.names.length);
    const reader = createSessionReader(adapter, place);
    for (const { path } of adapter.sessionFiles(place, cases.session, reader)) {
      const names = relative(place.home, path).split("/");
      // The top directory may always be a link.
      for (let depth = 1; depth <= names.length; depth += 1) {
        const at = join(place.home, ...names.slice(0, depth));
        const elsewhere = join(root, "dotfiles", String(depth), names[depth - 1]!);
        link(at, elsewhere);
        expect([at, filesIn(trustLinks(adapter, place, cases.session)).texts]).toEqual([at, plain.texts]);
        if (depth > 1) {
          const found = (() => {
            try {
              return filesIn(place).refused.size > 0;
            } catch (error) {
              return String(error).includes("a symbolic link is on its path");
            }
          })();
          expect([at, found]).toEqual([at, true]);
        }
        fs.rmSync(at);
        fs.renameSync(elsewhere, at);
      }
    }
  });
});

describe("a link", () => {
  let world: ConversationWorld;
  beforeEach(() => {
    world = createConversation();
    world.append(promptLine("write a book", world.path("worktree")));
    world.work(1);
  });
  afterEach(() => world[Symbol.dispose]());

  /** As if the user had started the agent now. */
  function start(): void {
    const directory = agentDirectory(world.context.config, world.context.mission);
    writePlace(systemMachine, directory, trustLinks(claude, readPlace(directory)!, "x"));
  }
  const project = () => dirname(world.transcript());
  const elsewhere = () => join(world.directory, "elsewhere");

  it("that is made after the start is not followed, and the checkpoint says so", async () => {
    link(project(), elsewhere());
    const { flaws, checkpoint } = await world.checkpoint();
    expect(checkpoint.metadata.conversation).toBeUndefined();
    expect(flaws).toEqual([
      {
        path: "conversation/claude",
        kind: "skipped",
        reason: `${project()}: a symbolic link is on its path, which was not there when you started the agent: ${project()} -> ${elsewhere()}`,
      },
    ]);
    start();
    expect((await world.checkpoint()).flaws).toEqual([]);
  });

  it("that leads to another place than at the start is not followed", async () => {
    link(project(), elsewhere());
    start();
    fs.rmSync(project());
    fs.mkdirSync(join(world.directory, "other"));
    fs.symlinkSync(join(world.directory, "other"), project());
    expect((await world.checkpoint()).flaws).toMatchObject([{ reason: expect.stringContaining("/other") }]);
  });

  it("to credentials is never followed", async () => {
    fs.writeFileSync(join(world.directory, "auth.json"), stepLines(1, "/w"));
    fs.rmSync(world.transcript());
    fs.symlinkSync(join(world.directory, "auth.json"), world.transcript());
    const directory = agentDirectory(world.context.config, world.context.mission);
    const links = { [world.transcript()]: join(world.directory, "auth.json") };
    writePlace(systemMachine, directory, { ...readPlace(directory)!, links });
    expect((await world.checkpoint()).flaws).toMatchObject([
      { reason: expect.stringContaining("leads to credentials") },
    ]);
  });

  it("to a directory that is gone: nothing is made in its place", async () => {
    link(project(), elsewhere());
    start();
    const { ref } = await world.checkpoint();
    world.work(2);
    await world.checkpoint();
    fs.renameSync(elsewhere(), `${elsewhere()}.unmounted`);
    const { flaws } = await restoreCell(world.context, { checkpoint: ref.id });
    expect(flaws.map(({ reason }) => reason)).toContainEqual(expect.stringContaining("and leads nowhere"));
    expect(fs.existsSync(elsewhere())).toBe(false);
  });
});

/** Where each fake keeps its sessions, below the home; OpenCode's are in the cell. */
const SESSIONS: Readonly<Record<string, string>> = {
  claude: ".claude/projects",
  codex: ".codex/sessions",
  gemini: ".gemini/tmp",
  qwen: ".qwen/projects",
  pi: ".pi/agent/sessions",
  copilot: ".copilot/session-state",
  cline: ".cline/data/sessions",
};

describe.concurrent("with its sessions behind a link", () => {
  let world: RevivalWorld;
  beforeAll(() => {
    world = createRevivalWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  it("every agent is listed here", () => {
    const own = Object.keys(PROFILES).filter((name) => PROFILES[name]!.notCaptured === undefined);
    expect([...Object.keys(SESSIONS), "opencode"].sort()).toEqual(own.sort());
  });

  it.each(Object.entries(SESSIONS))("%s: saved, restored and undone through it", async (agent, below) => {
    const path = join(world.user, below);
    const dotfiles = join(world.user, "dotfiles", agent);
    fs.mkdirSync(dotfiles, { recursive: true });
    fs.mkdirSync(dirname(path), { recursive: true });
    fs.symlinkSync(dotfiles, path);
    const book = world.book(agent, `${agent}-linked`, { FAKE_PAUSE: "2:response", FAKE_STEPS: "2" });
    await book.start();
    await book.paused();
    const context = world.context.openMission(book.mission);
    const { ref, flaws } = await takeCheckpoint(context, { reason: "manual" });
    expect(flaws).toEqual([]);
    fs.writeFileSync(join(book.traces, "go"), "");
    await book.finish();
    const whole = { texts: textsBelow(dotfiles), position: (await readConversation(context)).position };
    const restored = await restoreCell(context, { checkpoint: ref.id });
    expect(restored.flaws).toEqual([]);
    expect(restored.conversation!.turn).toBeLessThan(whole.position.turn);
    expect((await readConversation(context)).position).toEqual(restored.conversation);
    expect(textsBelow(dotfiles)).not.toEqual(whole.texts);
    await undoRestore(context);
    expect((await readConversation(context)).position).toEqual(whole.position);
    expect(textsBelow(dotfiles)).toEqual(whole.texts);
    expect(fs.readlinkSync(path)).toBe(dotfiles);
  });
});
