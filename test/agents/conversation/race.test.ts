// An agent that never pauses: it writes a file, then a transcript line about it, while checkpoints are taken. No checkpoint
// has a conversation that mentions a file that it lacks.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readConversation } from "../../../src/snapshot/operations/read-conversation.ts";
import { restoreTo } from "../../../src/snapshot/operations/restore-into.ts";
import { createConversation, promptLine, stepLines } from "./world.ts";

/** argv: worktree, transcript, the lines of a step with its number as 987654. */
const AGENT = `
  const fs = require("fs");
  const [worktree, transcript, lines] = process.argv.slice(1);
  // Ends on its own if the test dies first.
  for (let step = 1; step <= 4000; step += 1) {
    fs.writeFileSync(worktree + "/chapter-" + step + ".md", "chapter " + step);
    fs.appendFileSync(transcript, lines.replaceAll("987654", String(step)));
    if (step === 5) process.stdout.write("started");
    if (step % 4 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
`;
const CHECKPOINTS = 12;

it("a transcript that grows during a checkpoint never describes work that the files lack", async () => {
  using world = createConversation();
  const worktree = world.path("worktree");
  world.append(promptLine("write a book", worktree));
  const lines = stepLines(987_654, worktree);
  const agent = spawn(process.execPath, ["-e", AGENT, worktree, world.transcript(), lines], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ids: string[] = [];
  try {
    await once(agent.stdout, "data");
    for (let round = 0; round < CHECKPOINTS && agent.exitCode === null; round += 1)
      ids.push((await world.checkpoint()).ref.id);
  } finally {
    agent.kill("SIGKILL");
    await once(agent, "close");
  }
  for (const [round, id] of ids.entries()) {
    const { entries } = await readConversation(world.context, id);
    const claimed = entries.filter(({ call }) => call !== null).map(({ text }) => text.split(" ").at(-1));
    const directory = join(world.directory, `restored-${round}`);
    await restoreTo(world.context, { checkpoint: id, directory });
    const files = new Set(fs.readdirSync(join(directory, "worktree")));
    expect(claimed.length).toBeGreaterThan(0);
    expect(claimed.filter((step) => !files.has(`chapter-${step}.md`))).toEqual([]);
  }
});
