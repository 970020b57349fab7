import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCapture, parseCaptured, replayBytes } from "./output.ts";

const capture = (chunks: readonly Uint8Array[], head = 16, tail = 16) => {
  const kept = createCapture(head, tail);
  for (const chunk of chunks) kept.add(Buffer.from(chunk));
  return kept.finish();
};

describe("captured output", () => {
  it("replays the same bytes, text or not, as long as they fit", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 10 }), { maxLength: 3 }), (chunks) => {
        const stored = parseCaptured(JSON.parse(JSON.stringify(capture(chunks))));
        expect(replayBytes(stored).equals(Buffer.concat(chunks))).toBe(true);
      }),
    );
  });

  it("keeps head and tail, and says how much is missing", () => {
    const text = Array.from({ length: 100 }, (_, i) => String(i % 10)).join("");
    const kept = capture([...text].map((character) => Buffer.from(character)));
    expect(kept).toEqual({
      encoding: "utf8",
      head: text.slice(0, 16),
      tail: text.slice(-16),
      omittedBytes: 68,
    });
    expect(replayBytes(kept).toString()).toContain("[… 68 bytes not recorded …]");
  });

  it("is empty for an invalid record", () => {
    expect(replayBytes(parseCaptured(undefined)).length).toBe(0);
    expect(replayBytes(parseCaptured({ head: 5 })).length).toBe(0);
  });
});
