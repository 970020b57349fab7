// Which parts of a streamed response may be shown early, and how the response continues after them.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutAtWord, remainder } from "./live-parts.ts";
import { compactParts, type StreamPart } from "./response.ts";

const text = (delta: string): StreamPart => ({ type: "text-delta", id: "1", delta });
const START: StreamPart = { type: "text-start", id: "1" };

describe("live parts", () => {
  test("the last word waits until it is complete", () => {
    expect(cutAtWord([START, text("pass")])).toEqual({ ready: [START], rest: [text("pass")] });
    expect(cutAtWord([text("two words")])).toEqual({ ready: [text("two ")], rest: [text("words")] });
    expect(cutAtWord([text("done ")])).toEqual({ ready: [text("done ")], rest: [] });
    expect(cutAtWord([START])).toEqual({ ready: [START], rest: [] });
  });
  test("a response continues where the shown parts end, at any position", () => {
    const words = fc.array(fc.constantFrom("a", "b c", " d\n", "e "), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(words, fc.nat(20), (deltas, cut) => {
        const parts = [START, ...deltas.map(text), { type: "text-end", id: "1" }, { type: "finish" }];
        const shown = parts.slice(0, cut % parts.length);
        const rest = remainder(compactParts(parts), shown)!;
        expect(compactParts([...shown, ...rest]).filter(({ delta }) => delta !== "")).toEqual(
          compactParts(parts),
        );
      }),
    );
  });
  test("different text is detected", () => {
    expect(remainder([START, text("hello")], [START, text("help")])).toBeUndefined();
    expect(remainder([START], [START, text("x")])).toBeUndefined();
    expect(remainder([START, text("hello")], [{ type: "reasoning-start", id: "1" }])).toBeUndefined();
  });
});
