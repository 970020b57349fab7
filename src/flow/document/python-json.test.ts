import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatExact, NestingError, parseExact, pythonJson, pythonNumber } from "./python-json.ts";

const canonical = (text: string, ascii = true) => pythonJson(parseExact(text) as object, undefined, ascii);

describe("pythonJson", () => {
  it.for([
    ["0", "0"],
    ["-0", "0"],
    ["-0.0", "-0.0"],
    ["1.0", "1.0"],
    ["1e5", "100000.0"],
    ["1E+5", "100000.0"],
    ["1e15", "1000000000000000.0"],
    ["1e16", "1e+16"],
    ["1.25e16", "1.25e+16"],
    ["0.0001", "0.0001"],
    ["0.00001", "1e-05"],
    ["1.5e-7", "1.5e-07"],
    ["1e-100", "1e-100"],
    ["1e400", "Infinity"],
    ["-1e400", "-Infinity"],
    ["12345678901234567890", "12345678901234567890"],
    ["100.0", "100.0"],
    ["-7", "-7"],
  ])("writes %s as Python does: %s", ([source, expected]) => {
    expect(pythonNumber(source!)).toBe(expected);
  });

  it("sorts keys by code point, not by UTF-16 unit", () => {
    expect(canonical('{"\\ud83d\\ude00":1,"\\uff5e":2,"a":3}')).toBe(
      '{"a":3,"\\uff5e":2,"\\ud83d\\ude00":1}',
    );
  });

  it("escapes everything but printable ASCII, including DEL, unless `ascii` is false", () => {
    expect(canonical('{"a":"é\u007f😀"}')).toBe('{"a":"\\u00e9\\u007f\\ud83d\\ude00"}');
    expect(canonical('{"a":"é"}', false)).toBe('{"a":"é"}');
  });

  it("omits one field, at the top level only", () => {
    expect(pythonJson({ b: 1, h: 2, a: { h: 3 } }, "h", true)).toBe('{"a":{"h":3},"b":1}');
  });

  it("rejects excessive nesting", () => {
    expect(() => canonical(`{"a":${"[".repeat(300)}${"]".repeat(300)}}`)).toThrow(NestingError);
  });

  it("does not mix up the cached keys of different objects", () => {
    for (const text of ['{"b":1,"a":2}', '{"c":1}', '{"b":1,"a":2}']) {
      expect(canonical(text)).toBe(
        JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).sort())),
      );
    }
  });
});

describe("parsing and formatting", () => {
  it("keeps every digit of every number", () => {
    const text =
      '{\n  "a": 1.0,\n  "b": [\n    12345678901234567890,\n    1e-7,\n    -0.0\n  ],\n  "c": 7\n}\n';
    expect(formatExact(parseExact(text))).toBe(text);
  });

  it("keeps ordinary numbers as numbers", () => {
    expect(parseExact('{"a":7,"b":1.5,"t":"12:00:01.5"}')).toMatchObject({ a: 7, t: "12:00:01.5" });
  });

  it("round-trips any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.stringify(parseExact(JSON.stringify(value)))).toBe(JSON.stringify(value));
        expect(JSON.stringify(JSON.parse(formatExact(value)))).toBe(JSON.stringify(value));
      }),
    );
  });

  it("writes ASCII only", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(formatExact({ text })).toMatch(/^[\n\x20-\x7e]*$/);
        expect(JSON.parse(formatExact({ text })).text).toBe(text);
      }),
    );
  });
});
