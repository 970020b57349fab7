import { describe, expect, it } from "vitest";
import { createSimulatedClock } from "../../testing/index.ts";
import type { CliContext } from "../context.ts";
import { createProgressBar, progressLine } from "./progress.ts";

function watch(overrides: { json?: boolean; quiet?: boolean; isTerminal?: boolean; columns?: number }) {
  const clock = createSimulatedClock();
  let text = "";
  const context = {
    machine: { clock },
    globals: { json: overrides.json ?? false, quiet: overrides.quiet ?? false },
    terminal: {
      err: (more: string) => {
        text += more;
      },
      errIsTerminal: overrides.isTerminal ?? true,
      columns: overrides.columns ?? 80,
    },
  } as unknown as CliContext;
  return { clock, bar: createProgressBar(context), text: () => text };
}

const half = { phase: "storing", done: 512, total: 1024, unit: "bytes" } as const;

describe("the progress bar", () => {
  it("says what is done of what", () => {
    expect(progressLine(half)).toBe("storing ████████████░░░░░░░░░░░░ 50%  512 B of 1.0 KiB");
    expect(progressLine({ phase: "verifying", done: 3, total: 3, unit: "files" })).toContain(
      "100%  3 of 3 files",
    );
    expect(progressLine({ ...half, done: 0, total: 0 })).toContain("100%");
    expect(progressLine({ ...half, done: 9999 })).toContain("100%");
  });

  it("draws at most ten times a second, nothing at once, and takes itself away", async () => {
    const { clock, bar, text } = watch({});
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

  it("never flashes up for work that is over in a moment", () => {
    const { bar, text } = watch({});
    bar.show(half);
    bar.end();
    expect(text()).toBe("");
  });

  it("fits the terminal, so that a narrow one does not scroll", async () => {
    const { clock, bar, text } = watch({ columns: 20 });
    await clock.advance(200);
    bar.show(half);
    expect(text().replace("\r\x1b[K", "").length).toBeLessThan(20);
  });

  it("is silent with --json, with --quiet, and where nobody watches", async () => {
    for (const silent of [{ json: true }, { quiet: true }, { isTerminal: false }]) {
      const { clock, bar, text } = watch(silent);
      await clock.advance(200);
      bar.show(half);
      bar.end();
      expect(text()).toBe("");
    }
  });
});
