import fc from "fast-check";
import { expect, test } from "vitest";
import type { CapturedItem, CaptureItem, CaptureTask, TaskResult } from "../model/capture-item.ts";
import { decodeReply, encodeReply } from "./task-reply.ts";

const digest = fc.stringMatching(/^[0-9a-f]{64}$/);
const count = fc.nat(0xffff_ffff);
const large = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const text = fc.string({ unit: "binary", maxLength: 8 });
const given = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const facts = fc.record({
  isMissed: fc.boolean(),
  type: fc.constantFrom("file", "directory", "symlink", "fifo"),
  group: given(text),
  mode: fc.nat(0o7777),
  uid: count,
  gid: count,
  mtimeSec: fc.maxSafeInteger(),
  mtimeNs: fc.nat(999_999_999),
  size: large,
  sha256: digest,
  ctimeMs: fc.double({ noNaN: true, noDefaultInfinity: true }).map((ms) => ms + 0),
  ino: large,
  nlink: count,
  place: given(fc.record({ at: large, stored: large })),
  target: given(text),
  xattrs: given(fc.array(fc.tuple(text, text))),
  extents: given(fc.array(fc.tuple(large, large))),
  torn: given(text),
  degraded: given(text),
});
type Facts = typeof facts extends fc.Arbitrary<infer T> ? T : never;

const present = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

function itemOf({ type, size, group }: Facts, index: number): CaptureItem {
  return present({ path: `path ${index}`, type, size, group }) as CaptureItem;
}

function capturedOf(each: Facts, index: number): CapturedItem {
  const { type, mode, uid, gid, mtimeSec, mtimeNs, size, group, target, xattrs, extents } = each;
  const sha256 = type === "file" ? each.sha256 : "";
  const path = `path ${index}`;
  const stat = { path, type, mode, uid, gid, mtimeSec, mtimeNs, size, sha256 };
  const { ctimeMs, ino, nlink, place, torn, degraded } = each;
  const entry = present({ ...stat, group, target, xattrs, extents });
  return present({ entry, mark: { ctimeMs, ino, nlink }, ...place, torn, degraded }) as CapturedItem;
}

test("a result that was sent to another thread is the same result", () => {
  fc.assert(
    fc.property(fc.array(facts, { maxLength: 6 }), (all) => {
      const task: CaptureTask = { kind: "hash", codec: "gzip", root: "/", items: all.map(itemOf) };
      const result: TaskResult = {
        captured: all.flatMap((each, index) => (each.isMissed ? [] : [capturedOf(each, index)])),
        missed: [{ path: "path 0", why: "vanished", reason: "gone" }],
        signature: "a",
        short: true,
      };
      expect(decodeReply(structuredClone(encodeReply(result, task)), task)).toStrictEqual(result);
    }),
  );
});

test("the result of a piece has no items", () => {
  const item = { path: "a", type: "file", size: 9 } as const;
  const range = { offset: 0, length: 9, prefix: new Uint8Array(), suffixLength: 0 };
  const task: CaptureTask = { kind: "piece", codec: "gzip", root: "/", item, ...range };
  const member = { raw: Buffer.from("raw"), stored: Buffer.from("stored") };
  const result: TaskResult = { captured: [], missed: [], member };
  expect(decodeReply(encodeReply(result, task), task)).toStrictEqual(result);
});
