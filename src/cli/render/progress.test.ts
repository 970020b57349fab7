import { describe, expect, it } from "vitest";
import { createSimulatedClock } from "../../testing/index.ts";
import { createProgressBar, progressLine } from "./progress.ts";

function startBar(overrides: { json?: boolean; quiet?: boolean; isTerminal?: boolean; columns?: number }) {
  const clock = createSimulatedClock();
  let text = "";
  const terminal = {
    err: (more: string | Uint8Array) => {
      text += more;
    },
    errIsTerminal: overrides.isTerminal ?? true,
    columns: overrides.columns ?? 80,
  };
  const globals = { json: overrides.json ?? false, quiet: overrides.quiet ?? false };
  const bar = createProgressBar({ terminal, clock, globals });
  return { clock, bar, text: () => text };
}

const half = { phase: "storing", done: 512, total: 1024, unit: "bytes" } as const;

describe("the progress bar", () => {
  it("shows the share and the amount done", () => {
    expect(progressLine(half)).toBe("storing ████████████░░░░░░░░░░░░ 50%  512 B of 1.0 KiB");
    expect(progressLine({ phase: "verifying", done: 3, total: 3, unit: "files" })).toContain(
      "100%  3 of 3 files",
    );
    expect(progressLine({ ...half, done: 0, total: 0 })).toContain("100%");
    expect(progressLine({ ...half, done: 9999 })).toContain("100%");
  });

  it("redraws at most ten times a second, delays the first drawing, and clears the line at the end", async () => {
    const { clock, bar, text } = startBar({});
    for (let i = 0; i < 100; i += 1) {
      bar.show(half);
      await clock.advance(10);
    }
    expect(text().split("storing").length - 1).toBeLessThanOrEqual(10);
    expect(text().split("storing").length - 1).toBeGreaterThanOrEqual(8);
    bar.end();
    expect(text().endsWith("\r\x1b[K")).toBe(true);
    const before = text();
    bar.end();
    expect(text()).toBe(before);
  });

  it("does not appear for short work", () => {
    const { bar, text } = startBar({});
    bar.show(half);
    bar.end();
    expect(text()).toBe("");
  });

  it("is cut to the terminal width", async () => {
    const { clock, bar, text } = startBar({ columns: 20 });
    await clock.advance(200);
    bar.show(half);
    expect(text().replace("\r\x1b[K", "").length).toBeLessThan(20);
  });

  it("is silent with --json, with --quiet, and without a terminal", async () => {
    for (const silent of [{ json: true }, { quiet: true }, { isTerminal: false }]) {
      const { clock, bar, text } = startBar(silent);
      await clock.advance(200);
      bar.show(half);
      bar.end();
      expect(text()).toBe("");
    }
  });
});
