// `lazarus mcp`, driven by the SDK's own client.
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, LAUNCHER, type World } from "./hermetic.ts";

let world: World;
let client: Client;
const NOTES = "home/missions/m1/worktree/notes.md";
const write = (text: string) => world.write(NOTES, text);

beforeEach(async () => {
  world = createWorld();
  await world.call(["init", "m1"]);
  await world.call(["init", "m2"]);
  write("one\n");
  client = new Client({ name: "test", version: "1" });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [LAUNCHER, "mcp"],
      cwd: world.path("home/missions/m1/worktree"),
      env: { ...world.env, LAZARUS_MISSION: "m1" },
      stderr: "pipe",
    }),
  );
});
afterEach(async () => {
  await client.close();
  world[Symbol.dispose]();
});

interface Answer {
  readonly isError: boolean;
  readonly text: string;
}

async function call(name: string, args: Record<string, unknown> = {}): Promise<Answer> {
  const { isError, content } = await client.callTool({ name, arguments: args });
  const [first] = content as { text: string }[];
  return { isError: isError === true, text: first?.text ?? "" };
}

async function document(name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const { isError, text } = await call(name, args);
  expect([isError, text]).toEqual([false, expect.stringMatching(/^\{/)]);
  return JSON.parse(text.split("\n")[0]!);
}

it("lists its tools with what they may do", async () => {
  const { tools } = await client.listTools();
  const of = (hint: "readOnlyHint" | "destructiveHint") =>
    tools.filter(({ annotations }) => annotations?.[hint] === true).map(({ name }) => name);
  expect(of("readOnlyHint")).toEqual([
    ...["status", "list_checkpoints", "diff", "search_versions", "read_version", "flow_list", "effects"],
  ]);
  expect(of("destructiveHint")).toEqual(["once", "restore_file"]);
  for (const { description, inputSchema } of tools) {
    expect(description!.length).toBeGreaterThan(20);
    expect(Object.keys(inputSchema.properties ?? {})).not.toContain("mission");
  }
});

it("saves, lists, compares, finds versions and restores one file", async () => {
  await document("checkpoint", { message: "first" });
  write("two\n");
  expect((await call("diff", { from: "latest" })).text).toContain("notes.md");
  await document("checkpoint");
  const versions = await document("search_versions", { path: "notes.md" });
  const { checkpoints } = (await document("list_checkpoints")) as {
    checkpoints: { checkpoint_id: string; message: string | null }[];
  };
  const first = checkpoints.find(({ message }) => message === "first")!.checkpoint_id;
  expect(JSON.stringify(versions)).toContain(first);
  write("three\n");
  expect((await call("read_version", { path: "notes.md", checkpoint: first })).text).toContain("one");
  expect(await call("restore_file", { path: "notes.md", checkpoint: first })).toMatchObject({
    isError: false,
  });
  expect(world.read(NOTES)).toBe("one\n");
  // What was there before is saved.
  expect((await call("read_version", { path: "notes.md", checkpoint: "latest" })).text).toContain("three");
});

it("returns a file without our messages, and restores its mode", async () => {
  chmodSync(world.path(NOTES), 0o755);
  await document("checkpoint");
  expect((await call("read_version", { path: "notes.md" })).text).toBe("one\n");
  rmSync(world.path(NOTES));
  await document("restore_file", { path: "notes.md", checkpoint: "latest" });
  expect(statSync(world.path(NOTES)).mode & 0o777).toBe(0o755);
});

describe("refuses", () => {
  it("to restore everything, and names the command for a human", async () => {
    await document("checkpoint");
    for (const path of ["", ".", "..", "../state/heartbeat.json", "/etc/passwd"]) {
      const answer = await call("restore_file", { path, checkpoint: "latest" });
      expect(answer).toMatchObject({
        isError: true,
        text: expect.stringContaining("lazarus restore m1 CHECKPOINT --stop"),
      });
    }
  });

  it("another mission, and options in values", async () => {
    await document("checkpoint");
    const other = await call("read_version", { path: "notes.md", checkpoint: "latest --config=/x" });
    expect(other.isError).toBe(true);
    const option = await call("search_versions", { path: "--help" });
    expect(option).toMatchObject({ isError: true });
    const status = await document("status");
    expect(JSON.stringify(status)).not.toContain("m2");
  });
});

it("runs a command at most once and reports effects", async () => {
  await document("flow_start", {
    workflow: "w1",
    agent: "a",
    idempotency: "k1",
    steps: ["send", "tell"],
  });
  const log = world.path("sent.log");
  writeFileSync(log, "");
  const once = { workflow: "w1", key: "mail", command: ["sh", "-c", `echo sent >> ${log}`] };
  expect((await call("once", once)).isError).toBe(false);
  expect((await call("once", once)).isError).toBe(false);
  expect(readFileSync(log, "utf8")).toBe("sent\n");
  expect(await document("effects")).toMatchObject({
    effects: [{ source: "once", name: "mail", state: "done" }],
  });
  await document("flow_update", { workflow: "w1", complete: ["send"], step: "tell" });
  await document("flow_finish", { workflow: "w1", outcome: "complete" });
  expect((await call("flow_list")).text).toContain("done");
});

it("serves the mission of the cell that it is started in", async () => {
  const here = new Client({ name: "test", version: "1" });
  const cwd = world.path("home/missions/m2/worktree");
  await here.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [LAUNCHER, "mcp"],
      cwd,
      env: { ...world.env },
    }),
  );
  expect(here.getInstructions()).toContain("mission m2");
  await here.close();
});

it("needs a mission", () => {
  const { exit, stderr } = world.run(["mcp"]);
  expect(exit).toBe(6);
  expect(stderr).toContain("does not belong to a mission");
});
