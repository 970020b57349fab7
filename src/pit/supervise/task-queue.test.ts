import { expect, test } from "vitest";
import { createTaskQueue } from "./task-queue.ts";

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("runs one task per key, all keys concurrently, and again for a key added while its task runs", async () => {
  const log: string[] = [];
  const open = new Map<string, () => void>();
  const queue = createTaskQueue<string>((key) => {
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
  expect(log).toEqual(["begin a", "begin b", "begin c"]);
  queue.add("a");
  queue.add("a");
  open.get("a")!();
  await tick();
  expect(log.slice(3)).toEqual(["end a", "begin a"]);
  open.get("b")!();
  await tick();
  expect(log.slice(5)).toEqual(["end b"]);
  let idle = false;
  void queue.idle().then(() => {
    idle = true;
  });
  open.get("c")!();
  open.get("a")!();
  await tick();
  expect(idle).toBe(true);
});
