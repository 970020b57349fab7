// Random histories of a transcript: complete and cut lines, rewrites, lost caches, a disk that fails in the middle. Every
// checkpoint contains the complete lines that exist at that time, and restoring any of them returns exactly those.
import fs from "node:fs";
import fc from "fast-check";
import { expect, it } from "vitest";
import { listStaged, openStagedTree } from "../../../src/agents/conversation/staged.ts";
import { type Disk, systemDisk } from "../../../src/platform/disk.ts";
import { systemMachine } from "../../../src/platform/machine.ts";
import { takeCheckpoint } from "../../../src/snapshot/operations/checkpoint.ts";
import { restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { createConversation, promptLine, replaceWhole, stepLines } from "./world.ts";

type Event =
  | { readonly kind: "append"; readonly steps: number; readonly size: number }
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "rewrite" | "truncate" | "checkpoint" | "forget" }
  | { readonly kind: "fail"; readonly after: number }
  | { readonly kind: "restore"; readonly which: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      steps: fc.integer({ min: 1, max: 4 }),
      size: fc.constantFrom(0, 100, 5000, 60_000),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: "checkpoint" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("cut" as const), at: fc.integer({ min: 1, max: 200 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("rewrite" as const, "truncate" as const, "forget" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("fail" as const), after: fc.integer({ min: 0, max: 25 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("restore" as const), which: fc.nat(20) }) },
);

/** From the call after `after` on, nothing can be written: as if the process had been killed there. */
function failingDisk(after: number): Disk {
  let left = after;
  const limited = <A extends unknown[], R>(call: (...args: A) => R) => {
    return (...args: A): R => {
      left -= 1;
      if (left < 0) throw Object.assign(new Error("EIO: the disk fails"), { code: "EIO" });
      return call(...args);
    };
  };
  const { create, openAppend, write, fsync, rename, link, unlink, mkdir, fsyncDirectory } = systemDisk;
  return {
    ...systemDisk,
    create: limited(create),
    openAppend: limited(openAppend),
    write: limited(write),
    fsync: limited(fsync),
    rename: limited(rename),
    link: limited(link),
    unlink: limited(unlink),
    mkdir: limited(mkdir),
    fsyncDirectory: limited(fsyncDirectory),
  };
}

const wholeLines = (text: string) => text.slice(0, text.lastIndexOf("\n") + 1);

it("a checkpoint contains the complete lines that exist at that time, and a restore returns them", async () => {
  const history = fc.array(event, { minLength: 3, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(history, async (events) => {
      using world = createConversation();
      const cwd = world.path("worktree");
      const saved: { id: string; text: string }[] = [];
      let steps = 0;
      const nextStep = (size = 0) => {
        steps += 1;
        return stepLines(steps, cwd, "x".repeat(size));
      };
      const copy = () => listStaged(openStagedTree(world.cell), "claude")[0]?.read().toString("utf8") ?? "";
      for (const each of events) {
        switch (each.kind) {
          case "append":
            for (let i = 0; i < each.steps; i += 1) world.append(nextStep(each.size));
            break;
          case "cut":
            world.append(promptLine("cut off", cwd).slice(0, each.at));
            break;
          case "rewrite":
            replaceWhole(world.transcript(), nextStep() + (world.read() ?? ""));
            break;
          case "truncate":
            if (world.read() !== undefined) fs.truncateSync(world.transcript(), 0);
            break;
          case "forget":
            fs.rmSync(world.context.cacheDirectory, { recursive: true, force: true });
            break;
          case "fail": {
            const machine = { ...systemMachine, disk: failingDisk(each.after) };
            await takeCheckpoint({ ...world.context, machine }, { reason: "manual" }).catch(() => {});
            break;
          }
          case "checkpoint": {
            const text = wholeLines(world.read() ?? "");
            const { ref } = await world.checkpoint();
            if (text !== "") expect(copy()).toBe(text);
            saved.push({ id: ref.id, text });
            break;
          }
          case "restore": {
            const target = saved[each.which % Math.max(1, saved.length)];
            if (target === undefined || target.text === "") break;
            await restoreCell(world.context, { checkpoint: target.id });
            expect(wholeLines(world.read() ?? "")).toBe(target.text);
          }
        }
      }
    }),
    { numRuns: process.env.LAZARUS_PROPERTIES === "explore" ? 500 : 25 },
  );
}, 120_000);
