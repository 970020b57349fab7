import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBacklog } from "./backlog.ts";
import { createEscapeScanner } from "./escapes.ts";
import { createTerminalModes } from "./modes.ts";
import { createReadableText, readableText } from "./readable.ts";

function split(...chunks: string[]): string[] {
  const found: string[] = [];
  const scanner = createEscapeScanner({
    text: (bytes) => found.push(bytes.toString()),
    sequence: (sequence) => found.push(`<${sequence.slice(1)}>`),
  });
  for (const chunk of chunks) scanner.scan(Buffer.from(chunk));
  return found;
}

describe("escape sequences", () => {
  it("are separated from text", () => {
    expect(split("a\x1b[1;31mb\x1b]0;title\x07c\x1bP+q\x1b\\d\x1b(B\x1b7e")).toEqual([
      "a",
      "<[1;31m>",
      "b",
      "<]0;title\x07>",
      "c",
      "<P+q\x1b\\>",
      "d",
      "<(B>",
      "<7>",
      "e",
    ]);
  });
  it("may be cut anywhere", () => {
    expect(split("a\x1b", "[?10", "49hb")).toEqual(["a", "<[?1049h>", "b"]);
    expect(split("\x1b]0;t\x1b", "\\x")).toEqual(["<]0;t\x1b\\>", "x"]);
  });
  it("end at a cancel or at the next sequence", () => {
    expect(split("\x1b[12\x18a\x1b[3\x1b[4mb")).toEqual(["a", "<[4m>", "b"]);
    expect(split("\x1b]0;never ended\x1b[4mb")).toEqual(["<[4m>", "b"]);
  });
  it("keep the beginning of a long one", () => {
    const [sequence, rest] = split(`\x1b]52;c;${"A".repeat(1_000_000)}\x07end`);
    expect(sequence!.length).toBeLessThan(5000);
    expect(rest).toBe("end");
  });
});

describe("modes", () => {
  const after = (...sequences: string[]) => {
    const modes = createTerminalModes();
    for (const sequence of sequences) modes.apply(sequence);
    return modes;
  };
  it("of a full-screen program are entered and left", () => {
    const modes = after("\x1b[?1049h", "\x1b[?1000;1006h", "\x1b[?25l", "\x1b=", "\x1b[>1u", "\x1b[2;20r");
    expect(modes.isAlternate).toBe(true);
    expect(modes.enter()).toBe("\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?25l\x1b=\x1b[>1u");
    expect(modes.leave()).toBe(
      "\x1b[<1u\x1b>\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?1049l\x1b(B\x0f\x1b[0m",
    );
  });
  it("that were switched off again, or reset, are gone", () => {
    expect(after("\x1b[?2004h", "\x1b[?2004l", "\x1b[?25l", "\x1b[?25h", "\x1b[>1u", "\x1b[<u").enter()).toBe(
      "",
    );
    expect(after("\x1b[?1049h", "\x1b[?1003h", "\x1bc").enter()).toBe("");
  });
});

describe("the backlog", () => {
  const of = (...chunks: string[]) => {
    const backlog = createBacklog(100);
    const modes = createTerminalModes();
    const scanner = createEscapeScanner({ sequence: (sequence) => modes.apply(sequence) });
    for (const chunk of chunks) {
      backlog.add(Buffer.from(chunk), modes.isAlternate);
      scanner.scan(Buffer.from(chunk));
    }
    const { normal, alternate } = backlog.replay();
    return { normal: normal.toString(), alternate: alternate.toString() };
  };
  it("is bounded and begins with a line", () => {
    const lines = Array.from({ length: 40 }, (_, n) => `line ${n}\n`);
    const { normal } = of(...lines);
    expect(normal.length).toBeLessThanOrEqual(100);
    expect(normal).toMatch(/^line \d+\n/);
    expect(normal.endsWith("line 39\n")).toBe(true);
  });
  it("does not repeat terminal queries", () => {
    expect(
      of("a\x1b[c\x1b[6n\x1b[>0q\x1b]11;?\x07\x1bP+q544e\x1b\\\x05\x1b[?2026$p\x1b[14tb\x1b[1mc").normal,
    ).toBe("ab\x1b[1mc");
  });
  it("separates the alternate screen, unless its beginning is lost", () => {
    expect(of("before\x1b[?1049hpainted\x1b[?1049lafter")).toEqual({ normal: "beforeafter", alternate: "" });
    expect(of("before\x1b[?1049hpainted")).toEqual({ normal: "before", alternate: "painted" });
    expect(of("\x1b[?1049h", "x".repeat(80), "\n", "y".repeat(80))).toEqual({ normal: "", alternate: "" });
  });
});

describe("readable text", () => {
  it("has no escapes, and lines as they last were", () => {
    const output =
      "\x1b[32mok\x1b[0m\r\n10%\r20%\r100%\r\nab\bc\x1b[K\x07\r\n\x1b[2J\x1b[Htop\x1b[2;1Hnext\tx";
    expect(readableText(Buffer.from(output))).toBe("ok\n100%\nac\ntop\nnext\tx");
  });
  it("does not depend on how the output was cut", () => {
    const output = Buffer.from("grüße \x1b[1m世界\x1b[0m 🎉\r\n\x1b]0;title\x07done\r\n");
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: output.length })), (cuts) => {
        const text = createReadableText();
        const ends = [...cuts.sort((a, b) => a - b), output.length];
        expect(ends.map((to, n) => text.add(output.subarray(ends[n - 1] ?? 0, to))).join("")).toBe(
          "grüße 世界 🎉\ndone\n",
        );
      }),
    );
  });
});
