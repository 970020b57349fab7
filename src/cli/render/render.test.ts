// Tables, widths, times and colors: the output fits, and no control characters reach the terminal.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatBytes, formatDuration, formatTime } from "./format.ts";
import { createPainter, escapeControls, formatJson } from "./paint.ts";
import { type Column, renderTable } from "./table.ts";
import { displayWidth, shorten } from "./width.ts";

type Row = readonly [name: string, status: string, note: string];
const COLUMNS: Column<Row>[] = [
  { head: "NAME", cell: ([name]) => name, shrinks: true },
  { head: "STATUS", cell: ([, status]) => status },
  { head: "NOTE", cell: ([, , note]) => note, shrinks: true },
];
const render = (rows: Row[], width = 80) => renderTable(COLUMNS, rows, width);

describe("a table", () => {
  it("aligns its columns and leaves no space at the end of a line", () => {
    expect(
      render([
        ["a", "healthy", ""],
        ["longer", "ok", "note"],
      ]),
    ).toBe("NAME    STATUS   NOTE\na       healthy\nlonger  ok       note\n");
  });

  it("fits the width by shortening the widest column that allows it", () => {
    expect(render([["x".repeat(50), "healthy", "y".repeat(40)]], 40)).toBe(
      `NAME            STATUS   NOTE\n${"x".repeat(13)}…  healthy  ${"y".repeat(14)}…\n`,
    );
  });

  it("is never wider than 80 columns", () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.string({ unit: "binary" }),
    );
    const row = fc.tuple(text, fc.constantFrom("healthy", "uninitialized"), text);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), (rows) => {
        const lines = render(rows).split("\n");
        expect(lines).toHaveLength(rows.length + 2);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(80);
      }),
    );
  });

  it("adds colors after fitting, so that they do not count as width", () => {
    const painted = COLUMNS.map((column) => ({
      ...column,
      paint: (text: string) => `\x1b[31m${text}\x1b[39m`,
    }));
    const plain = renderTable(painted, [["a", "b", "c"]], 80).replaceAll(/\x1b\[\d+m/g, "");
    expect(plain).toBe(render([["a", "b", "c"]]));
  });

  it("has notes above rows, which do not widen its columns", () => {
    const noteAbove = (row: Row) => (row[0] === "c" ? "two rows are left out here" : undefined);
    const whole = renderTable(
      COLUMNS,
      [
        ["a", "b", "c"],
        ["c", "d", "e"],
      ],
      80,
      noteAbove,
    ).split("\n");
    expect(whole[2]).toBe("two rows are left out here");
    expect(whole.toSpliced(2, 1).join("\n")).toBe(
      render([
        ["a", "b", "c"],
        ["c", "d", "e"],
      ]),
    );
  });

  it("aligns numbers to the right", () => {
    const columns: Column<number>[] = [
      { head: "AGE", cell: String, alignRight: true },
      { head: "X", cell: () => "x" },
    ];
    expect(renderTable(columns, [5, 12345], 80)).toBe("  AGE  X\n    5  x\n12345  x\n");
  });
});

describe("display width", () => {
  it.each([
    ["plain", 5],
    ["日本語", 6],
    ["e\u0301", 1],
    ["🚀", 2],
    ["한국", 4],
    ["a\u200bb", 2],
    ["é", 1],
  ])("%s is %i", (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it("is respected when text is shortened, without splitting characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, width) => {
        const short = shorten(text, width);
        expect(displayWidth(short)).toBeLessThanOrEqual(width);
        expect(short.isWellFormed()).toBe(true);
        if (displayWidth(text) <= width) expect(short).toBe(text);
      }),
    );
  });
});

describe("untrusted text", () => {
  it("has control characters and direction overrides escaped", () => {
    expect(escapeControls("a\x1b[2Jb\r\n\x9b31m\u202egnp")).toBe(
      "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{9b}31m\\u{202e}gnp",
    );
  });

  it("is unchanged when it is plain", () => {
    expect(escapeControls("plain, größer, 日本 🚀")).toBe("plain, größer, 日本 🚀");
  });

  it("has no control character afterwards", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => !/\p{Cc}/u.test(escapeControls(text))));
  });
});

describe("color", () => {
  const red = (env: Record<string, string>, terminal: boolean) => createPainter(env, () => terminal).red("x");
  const RED = "\x1b[31mx\x1b[39m";

  it("is on for terminals", () => {
    expect(red({}, true)).toBe(RED);
    expect(red({}, false)).toBe("x");
    expect(red({ TERM: "dumb" }, true)).toBe("x");
  });

  it("is off with a non-empty NO_COLOR", () => {
    expect(red({ NO_COLOR: "1", FORCE_COLOR: "1" }, true)).toBe("x");
    expect(red({ NO_COLOR: "0" }, true)).toBe("x");
    expect(red({ NO_COLOR: "" }, true)).toBe(RED);
  });

  it("is on with FORCE_COLOR, and off with FORCE_COLOR=0", () => {
    expect(red({ FORCE_COLOR: "1" }, false)).toBe(RED);
    expect(red({ FORCE_COLOR: "0" }, true)).toBe("x");
  });
});

describe("formats", () => {
  it.each([
    [0, "0s"],
    [59.9, "59s"],
    [60, "1m"],
    [3725, "1h 2m"],
    [86_400, "1d"],
    [90_061, "1d 1h"],
    [-5, "0s"],
  ])("a duration: %d s is %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [150 * 1024, "150 KiB"],
    [5 * 1024 ** 4, "5.0 TiB"],
    [5000 * 1024 ** 4, "5000 TiB"],
  ])("a size: %d bytes are %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it("a time as UTC to the second, and an invalid time", () => {
    expect(formatTime(Date.UTC(2026, 10, 15, 23, 53, 1, 999))).toBe("2026-11-15 23:53:01Z");
    expect(formatTime(Number.MAX_VALUE)).toBe("invalid time");
  });
});

describe("JSON", () => {
  it("round-trips and contains no terminal controls", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const json = formatJson({ text });
        expect(JSON.parse(json)).toEqual({ text });
        expect(escapeControls(json)).toBe(json);
      }),
    );
    expect(formatJson({ text: "\u009b2J\u202e" })).toBe('{"text":"\\u009b2J\\u202e"}');
  });
});
