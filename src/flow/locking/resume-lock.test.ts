import { describe, expect, it } from "vitest";
import { createSimulatedProcesses } from "../../testing/index.ts";
import {
  judgeLiveness,
  livenessOf,
  livenessOfMark,
  type Owner,
  ownerFields,
  ownerMark,
  ownerOf,
  parseOwner,
  selfOwner,
} from "./owner.ts";
import { judgeLock, type LockReading } from "./resume-lock.ts";

const processes = createSimulatedProcesses();
const living = (name: string | null = null): Owner => ownerOf(processes, processes.start().pid, name)!;
const lockOf = (owner: Owner): LockReading => ({
  kind: "owned",
  owner,
  takenAt: "2026-11-15T23:53:01+00:00",
});
const verdict = (lock: LockReading, me: Owner) =>
  judgeLock(lock, me, (owner) => livenessOf(processes, owner, me));

describe("the resume lock", () => {
  it("is free when there is none", () => {
    expect(verdict({ kind: "none" }, living())).toBe("free");
  });

  it("is mine when I hold it", () => {
    const me = living();
    expect(verdict(lockOf(me), me)).toBe("mine");
  });

  it("is held by a live owner", () => {
    expect(verdict(lockOf(living()), living())).toBe("held");
  });

  it("is dead when its owner ended, its pid was reused, or the machine was rebooted", () => {
    const [ended, reused, rebooted] = [living(), living(), living()];
    processes.end(ended.pid);
    processes.reuse(reused.pid);
    expect(verdict(lockOf(ended), living())).toBe("dead");
    expect(verdict(lockOf(reused), living())).toBe("dead");
    processes.reboot();
    expect(verdict(lockOf(rebooted), living())).toBe("dead");
  });

  it("is held when its owner is not visible from here", () => {
    const me = living();
    expect(verdict(lockOf({ ...me, pid: 99_999, host: "another" }), me)).toBe("held");
    expect(verdict(lockOf({ ...me, pid: 99_999, namespace: "pid:[1]" }), me)).toBe("held");
  });

  it("is dead when its owner's container was restarted as this one", () => {
    const me = { ...living(), namespace: "pid:[2]", container: "layer" };
    expect(judgeLiveness({ ...me, namespace: "pid:[1]" }, me, undefined)).toBe("dead");
    expect(judgeLiveness({ ...me, namespace: "pid:[1]", container: "other" }, me, undefined)).toBe(
      "elsewhere",
    );
  });

  it("is held when another tool created it: its owner is unknown", () => {
    expect(verdict({ kind: "ownerless", content: "2026-11-15" }, living())).toBe("held");
  });

  it("is not shared by owners with empty names", () => {
    expect(verdict(lockOf(living("")), living(""))).toBe("held");
    expect(selfOwner(processes, "").name).toBe(null);
  });

  it("belongs to a name across processes and hosts", () => {
    const before = living("session-7");
    processes.end(before.pid);
    expect(verdict(lockOf(before), living("session-7"))).toBe("mine");
    expect(verdict(lockOf(living("session-7")), living("session-8"))).toBe("held");
    expect(verdict(lockOf({ ...before, host: "another" }), living("session-7"))).toBe("mine");
  });

  it("round-trips through its file", () => {
    const owner = living("anna");
    expect(parseOwner(JSON.parse(JSON.stringify(ownerFields(owner))))).toEqual(owner);
    expect(parseOwner({ pid: 0 })).toBeUndefined();
    expect(parseOwner({ pid: "7" })).toBeUndefined();
  });
});

describe("the mark of a mutex holder", () => {
  it("fits into an inode and distinguishes live from dead holders", () => {
    const me = living();
    const other = { ...living(), namespace: "pid:[4026531836]", container: null };
    const mark = ownerMark({ ...other, pid: 4_194_304, processStart: "12345678901234" });
    expect(mark.length).toBeLessThanOrEqual(59);
    const here = { ...me, namespace: other.namespace, container: null };
    expect(livenessOfMark(processes, ownerMark(other), here)).toEqual({ pid: other.pid, liveness: "alive" });
    processes.end(other.pid);
    expect(livenessOfMark(processes, ownerMark(other), here)?.liveness).toBe("dead");
    expect(livenessOfMark(processes, ownerMark({ ...other, host: "x" }), here)?.liveness).toBe("elsewhere");
    expect(livenessOfMark(processes, "not a mark", here)).toBeUndefined();
  });
});
