import { expect, test } from "vitest";
import { createTaskQueue } from "./task-queue.ts";

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("runs one task per key, a few keys concurrently, and again for a key added while its task runs", async () => {
  const log: string[] = [];
  const open = new Map<string, () => void>();
  const queue = createTaskQueue<string>(2, (key) => {
    log.push(`begin ${key}`);
    return new Promise((resolve) => {
      open.set(key, () => {
        log.push(`end ${key}`);
        resolve();
      });
    });
  });
  for (const key of ["a", "b", "c"]) queue.add(key);
  await tick();
  expect(log).toEqual(["begin a", "begin b"]);
  queue.add("a");
  queue.add("a");
  open.get("a")!();
  await tick();
  expect(log.slice(2)).toEqual(["end a", "begin c"]);
  open.get("b")!();
  await tick();
  expect(log.slice(4)).toEqual(["end b", "begin a"]);
  let idle = false;
  void queue.idle().then(() => {
    idle = true;
  });
  open.get("c")!();
  open.get("a")!();
  await tick();
  expect(idle).toBe(true);
});
