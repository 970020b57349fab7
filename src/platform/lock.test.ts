// Kernel locks between real processes: no lock is ever stale.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSimulatedClock } from "../testing/simulated-clock.ts";
import { LazarusError } from "./errors.ts";
import { acquireLock, readLockOwner, tryAcquireLock } from "./lock.ts";
import { systemMachine } from "./machine.ts";

let directory: string;
let path: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-lock-"));
  path = join(directory, "mission.lock");
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

/** A process that holds the lock until it is killed or its stdin tells it to release it. */
async function startHolder(purpose: string): Promise<ChildProcess> {
  const source = `
    import { tryAcquireLock } from ${JSON.stringify(new URL("lock.ts", import.meta.url).href)};
    import { systemMachine } from ${JSON.stringify(new URL("machine.ts", import.meta.url).href)};
    const lock = tryAcquireLock(systemMachine, ${JSON.stringify(path)}, ${JSON.stringify(purpose)});
    process.stdout.write(lock ? "held" : "refused");
    process.stdin.once("data", () => { lock[Symbol.dispose](); process.stdin.destroy(); });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const [output] = await once(child.stdout!, "data");
  expect(String(output)).toBe("held");
  return child;
}

describe("a lock that another process holds", () => {
  it("is refused with LOCK_HELD, which names the owner", async () => {
    const holder = await startHolder("checkpoint of deploy-42");
    expect(tryAcquireLock(systemMachine, path, "restore")).toBeUndefined();
    const error = await acquireLock(systemMachine, path, { purpose: "restore" }).catch((error) => error);
    expect(error).toBeInstanceOf(LazarusError);
    expect(error).toMatchObject({ code: "LOCK_HELD", exitCode: 10 });
    expect(error.message).toContain(`process ${holder.pid}`);
    expect(error.message).toContain("checkpoint of deploy-42");
    expect(error.hint).toContain(String(holder.pid));
    expect(error.details.owner).toMatchObject({ pid: holder.pid, purpose: "checkpoint of deploy-42" });
  });

  it("is free as soon as its holder is killed, although the file still names it", async () => {
    const holder = await startHolder("long work");
    holder.kill("SIGKILL");
    await once(holder, "exit");
    expect(readFileSync(path, "utf8")).toContain("long work");
    using lock = await acquireLock(systemMachine, path, { purpose: "take over" });
    expect(lock.path).toBe(path);
    expect(readLockOwner(path)).toMatchObject({ pid: process.pid, purpose: "take over" });
  });

  it("is passed to a waiting process", async () => {
    const holder = await startHolder("short work");
    const waiting = acquireLock(systemMachine, path, { purpose: "next", waitMs: 10 * 60_000 });
    holder.stdin!.write("release");
    using lock = await waiting;
    expect(lock.path).toBe(path);
  });

  it("makes a waiter fail after waitMs, and not before", async () => {
    using held = tryAcquireLock(systemMachine, path, "held here");
    expect(held).toBeDefined();
    const clock = createSimulatedClock();
    let outcome: unknown = "waiting";
    acquireLock({ ...systemMachine, clock }, path, { purpose: "waiter", waitMs: 1000 }).then(
      () => assign("acquired"),
      (error) => assign(error.code),
    );
    function assign(value: unknown) {
      outcome = value;
    }
    await clock.advance(999);
    expect(outcome).toBe("waiting");
    await clock.advance(1);
    expect(outcome).toBe("LOCK_HELD");
    expect(clock.sleepers).toBe(0);
  });

  it("stops waiting when the signal aborts", async () => {
    using held = tryAcquireLock(systemMachine, path, "held here");
    expect(held).toBeDefined();
    const waiting = acquireLock(systemMachine, path, {
      purpose: "waiter",
      waitMs: 60_000,
      signal: AbortSignal.timeout(20),
    });
    await expect(waiting).rejects.toMatchObject({ code: "LOCK_HELD" });
  });
});

describe("a lock of this process", () => {
  it("also excludes a second holder in the same process", () => {
    using first = tryAcquireLock(systemMachine, path, "first");
    expect(first).toBeDefined();
    expect(tryAcquireLock(systemMachine, path, "second")).toBeUndefined();
  });

  it("leaves an empty private file behind, and can be released twice", () => {
    const lock = tryAcquireLock(systemMachine, path, "work");
    lock![Symbol.dispose]();
    lock![Symbol.dispose]();
    expect(readFileSync(path, "utf8")).toBe("");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readLockOwner(path)).toBeUndefined();
    using again = tryAcquireLock(systemMachine, path, "again");
    expect(again).toBeDefined();
  });

  it("is not inherited by programs that this process starts", async () => {
    const lock = tryAcquireLock(systemMachine, path, "starts a program");
    const child = spawn("sleep", ["30"]);
    children.push(child);
    await once(child, "spawn");
    lock![Symbol.dispose]();
    using again = tryAcquireLock(systemMachine, path, "again");
    expect(again).toBeDefined();
  });

  it("ignores invalid content of the lock file", async () => {
    for (const nonsense of ["{", "null", "7", '"x"', "[]", '{"pid":"1"}']) {
      writeFileSync(path, nonsense);
      expect(readLockOwner(path), nonsense).toBeUndefined();
      using lock = tryAcquireLock(systemMachine, path, "work");
      expect(lock).toBeDefined();
    }
  });
});
