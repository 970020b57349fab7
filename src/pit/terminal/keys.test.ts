import { describe, expect, it } from "vitest";
import { createFrameDecoder, encodeFrame } from "./frames.ts";
import {
  createDetachMatcher,
  describeDetachKeys,
  isReport,
  parseDetachKeys,
  typedInterrupt,
} from "./keys.ts";

function typed(keys: string, ...chunks: string[]) {
  const matcher = createDetachMatcher(parseDetachKeys(keys)!);
  const results = chunks.map((chunk) => matcher(Buffer.from(chunk)));
  return {
    forward: results.map(({ forward }) => forward.toString()).join(""),
    isDetach: results.at(-1)!.isDetach,
  };
}

describe("detach keys", () => {
  it("are parsed and described", () => {
    expect(parseDetachKeys("ctrl-\\")).toEqual([0x1c]);
    expect(parseDetachKeys("ctrl-p,ctrl-Q,x")).toEqual([0x10, 0x11, 0x78]);
    for (const bad of ["", "ctrl-", "ctrl-pp", "f1", "a,,b"]) expect(parseDetachKeys(bad)).toBeUndefined();
    expect(describeDetachKeys("ctrl-p,ctrl-q")).toBe("Ctrl-P Ctrl-Q");
  });
  it("are found in all three encodings of a key", () => {
    for (const key of ["\x1c", "\x1b[92;5u", "\x1b[92;69u", "\x1b[92:124;5:1u", "\x1b[27;5;92~"])
      expect(typed("ctrl-\\", `ls${key}`)).toEqual({ forward: "ls", isDetach: true });
    // Released, with Alt too, another key.
    for (const key of ["\x1b[92;5:3u", "\x1b[92;7u", "\x1b[91;5u"])
      expect(typed("ctrl-\\", key)).toEqual({ forward: key, isDetach: false });
  });
  it("are held back until the sequence is complete or not", () => {
    expect(typed("ctrl-p,ctrl-q", "a\x10")).toEqual({ forward: "a", isDetach: false });
    expect(typed("ctrl-p,ctrl-q", "a\x10", "\x11")).toEqual({ forward: "a", isDetach: true });
    expect(typed("ctrl-p,ctrl-q", "\x10", "b")).toEqual({ forward: "\x10b", isDetach: false });
    expect(typed("ctrl-p,ctrl-q", "\x10\x10", "\x11")).toEqual({ forward: "\x10", isDetach: true });
  });
  it("inside a paste are text", () => {
    const paste = "\x1b[200~a\x1cb\x1b[201~";
    expect(typed("ctrl-\\", paste)).toEqual({ forward: paste, isDetach: false });
    expect(typed("ctrl-\\", paste, "\x1c")).toEqual({ forward: paste, isDetach: true });
  });
  it("leave every other byte unchanged", () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte !== 0x1c));
    expect(createDetachMatcher([0x1c])(bytes)).toEqual({ forward: bytes, isDetach: false });
  });
});

it("Ctrl-C and Ctrl-\\ are interrupts, typed but not pasted", () => {
  expect(typedInterrupt(Buffer.from("ab\x03"))).toBe("SIGINT");
  expect(typedInterrupt(Buffer.from("\x1b[99;5u"))).toBe("SIGINT");
  expect(typedInterrupt(Buffer.from("\x1c"))).toBe("SIGQUIT");
  expect(typedInterrupt(Buffer.from("abc\r"))).toBeUndefined();
  expect(typedInterrupt(Buffer.from(`${"x".repeat(2000)}\x03`))).toBeUndefined();
});

it("replies of a terminal are distinguished from keys", () => {
  for (const report of [
    "\x1b[?62;22c",
    "\x1b[12;40R",
    "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b[I",
    "\x1b[?2026;2$y",
  ])
    expect(isReport(Buffer.from(report)), JSON.stringify(report)).toBe(true);
  for (const key of ["\x1b", "\x1b[A", "\x1b[200~x\x1b[201~", "\x1bOP", "\x1b[<0;10;10M", "c", "\x1b[I\r"])
    expect(isReport(Buffer.from(key)), JSON.stringify(key)).toBe(false);
});

describe("frames", () => {
  it("arrive as they were sent, however they are cut", () => {
    const sent = Buffer.concat([encodeFrame("hello", "{}"), encodeFrame("input", Buffer.alloc(3000, 1))]);
    const decode = createFrameDecoder();
    const frames = Array.from({ length: sent.length }, (_, n) => decode(sent.subarray(n, n + 1))).flat();
    expect(frames.map(({ type, payload }) => [type, payload.length])).toEqual([
      ["hello", 2],
      ["input", 3000],
    ]);
  });
  it("of another kind, or too long, are refused", () => {
    expect(() => createFrameDecoder()(Buffer.from("GET / HTTP/1.1\r\n"))).toThrow("not a frame");
    expect(() => createFrameDecoder()(Buffer.from([1, 255, 255, 255, 255]))).toThrow("not a frame");
  });
});
