import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeValue, encodeRecord, encodeValue } from "./codec.ts";

const roundTrip = (value: unknown) => decodeValue(JSON.parse(JSON.stringify(encodeValue(value))));

test("keeps what JSON loses", () => {
  const value = {
    date: new Date(5),
    invalid: new Date(Number.NaN),
    set: new Set([1, new Date(2)]),
    map: new Map<unknown, unknown>([["k", { big: 12n }]]),
    bytes: new Uint8Array([1, 2, 255]),
    buffer: new Uint8Array([7]).buffer,
    numbers: [Number.NaN, Number.NEGATIVE_INFINITY, -0],
    url: new URL("https://example.org/a?b"),
    pattern: /a+/gi,
    holes: [undefined, null],
  };
  expect(roundTrip(value)).toStrictEqual(value);
});

test("data that looks like a tag stays data", () => {
  const value = { $bytes: "aGk=", nested: { $: "bytes", v: "aGk=" }, deep: { $: { $: "date", v: 5 } } };
  expect(roundTrip(value)).toStrictEqual(value);
});

test("errors keep name, message and cause", () => {
  const copy = roundTrip(new TypeError("no", { cause: { code: 7 } })) as Error;
  expect([copy instanceof Error, copy.name, copy.message, copy.cause]).toEqual([
    true,
    "TypeError",
    "no",
    { code: 7 },
  ]);
});

test.each([
  ["a function", { f: () => {} }, "value.f"],
  ["an instance of Socket", { list: [new (class Socket {})()] }, "value.list[0]"],
  ["a symbol", Symbol("x"), "value"],
])("%s is refused, naming its path", (what, value, path) => {
  expect(() => encodeValue(value)).toThrow(`${path} is ${what}`);
});

test("a cycle is refused", () => {
  const value: Record<string, unknown> = {};
  value.self = value;
  expect(() => encodeValue(value)).toThrow("value.self is a cycle");
});

const nested = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth));

test("a value is refused before it exhausts the stack", () => {
  for (const depth of [198, 199, 200]) expect(roundTrip(nested(depth))).toEqual(nested(depth));
  for (const depth of [201, 202, 100_000])
    expect(() => encodeValue(nested(depth))).toThrow("value is nested more than 200 levels deep");
});

test("a record has no depth limit, so that it can wrap any accepted value", () => {
  expect(encodeRecord({ output: nested(200) })).toEqual({ output: nested(200) });
  expect(encodeRecord(nested(600))).toEqual(nested(600));
});

test("any plain value survives", () => {
  const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true });
  fc.assert(
    fc.property(anything, (value) => {
      expect(roundTrip(value)).toEqual(value);
    }),
  );
});
