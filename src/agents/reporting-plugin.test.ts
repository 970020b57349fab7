import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readHookLines, summarizeHooks } from "./hook-lines.ts";
import { reporterSource } from "./reporting-plugin.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-it's a plugin-"));
  mkdirSync(join(directory, "hooks"));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
  delete process.env.LAZARUS_EPOCH;
});

type Ended = (call: { id?: unknown; tool: string; command?: string }) => void;

/** The plugin's `ended`, and what `lazarus hook` was given; undefined when it was not called. */
async function plugin(hooks: string | null): Promise<{ ended: Ended; reported(): string | undefined }> {
  const seen = join(directory, "seen");
  const command = ["/bin/sh", "-c", 'cat > "$0"', seen];
  const file = join(directory, "hooks", "plugin.mjs");
  writeFileSync(file, `${reporterSource(command, hooks)}\nexport { ended };\n`);
  const { ended } = (await import(file)) as { ended: Ended };
  return { ended, reported: () => (existsSync(seen) ? readFileSync(seen, "utf8") : undefined) };
}

const started = (id: string) => ({
  at_ms: 1,
  epoch: 3,
  kind: "tool-start" as const,
  call: { id, tool: "bash", summary: "make", command: "make" },
});

it("appends the end of a call in its own process, readable only by the user", async () => {
  process.env.LAZARUS_EPOCH = "3";
  const { ended, reported } = await plugin(join(directory, "hooks"));
  ended({ id: "1", tool: "bash", command: "make" });
  expect(reported()).toBeUndefined();
  const lines = readHookLines(directory, 3);
  expect(lines).toMatchObject([{ kind: "tool-end", call: { id: "1" } }]);
  expect(summarizeHooks([started("1"), started("2"), ...lines]).openCalls).toMatchObject([{ id: "2" }]);
  expect(statSync(join(directory, "hooks.jsonl")).mode & 0o777).toBe(0o600);
});

it.each([
  ["without an id", "3", true, {}],
  ["outside a life", "", true, { id: "1" }],
  ["when it is installed", "3", false, { id: "1" }],
  ["when it cannot write", "3", true, { id: "1", isBlocked: true }],
] as const)(
  "calls lazarus hook %s",
  async (_, epoch, isRun, { id, isBlocked }: { id?: string; isBlocked?: boolean }) => {
    process.env.LAZARUS_EPOCH = epoch;
    if (isBlocked === true) mkdirSync(join(directory, "hooks.jsonl"));
    const { ended, reported } = await plugin(isRun ? join(directory, "hooks") : null);
    ended({ ...(id !== undefined && { id }), tool: "bash", command: "make" });
    expect(JSON.parse(reported()!)).toMatchObject({
      kind: "tool-end",
      call: { tool: "bash", command: "make" },
    });
  },
);
