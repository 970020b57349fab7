// How stored values are shown to people.
import { expect, test } from "vitest";
import { plainJson, plainText } from "./plain-json.ts";

test("nothing that was stored is shown as empty", () => {
  const value = {
    map: new Map([["a", 1]]),
    pairs: new Map([[1, { deep: new Set(["x"]) }]]),
    bytes: new Uint8Array([104, 105]),
    buffer: new Uint8Array([104, 105]).buffer,
    big: 12n,
    date: new Date(0),
    pattern: /a+/i,
    error: new TypeError("no"),
    gone: undefined,
  };
  expect(plainJson(value)).toEqual({
    map: { a: 1 },
    pairs: [[1, { deep: ["x"] }]],
    bytes: "aGk=",
    buffer: "aGk=",
    big: "12",
    date: "1970-01-01T00:00:00.000Z",
    pattern: "/a+/i",
    error: "TypeError: no",
  });
  expect(plainText(new Map([["a", 1n]]))).toBe('{"a":"1"}');
  expect([plainText(undefined), plainJson(undefined)]).toEqual(["undefined", null]);
});
