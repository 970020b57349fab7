// docs/agents.md: every command line in it is one that Lazarus accepts, and every agent in it one that can be resumed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUILT_IN, findAdapter } from "../../src/agents/adapters.ts";
import { parseSimpleCommand } from "../../src/agents/shell-line.ts";
import { CATALOGUE } from "../../src/cli/catalogue.ts";
import { findCommand } from "../../src/cli/find-command.ts";
import { parseLine } from "../../src/cli/parse.ts";

const TEXT = readFileSync(join(import.meta.dirname, "..", "..", "docs", "agents.md"), "utf8");
const inBlocks = [...TEXT.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, body]) => body!.split("\n"));
const inTables = TEXT.split("\n")
  .filter((line) => line.startsWith("| "))
  .flatMap((line) => [...line.matchAll(/`(lazarus [^`]+)`/g)].map(([, found]) => found!))
  .filter((line) => BUILT_IN.some(({ name }) => line.startsWith(`lazarus ${name}`)));
const LINES = [...new Set([...inBlocks, ...inTables].map((line) => line.replace(/\s+#.*$/, "")))].filter(
  (line) => line.startsWith("lazarus ") || line.startsWith("eval "),
);

describe("docs/agents.md", () => {
  it.each(LINES)("%s", async (line) => {
    const shell = /^eval "\$\((.*)\)"$/.exec(line)?.[1] ?? line;
    // A shell expands the home before Lazarus sees it.
    const { words } = parseSimpleCommand(shell.replaceAll("~", "/home/you"))!;
    const found = findCommand(CATALOGUE, words.slice(1));
    expect(found, line).toBeDefined();
    const { command } = await found!.entry.load();
    if (!command.raw) expect(() => parseLine(found!.name, command, found!.rest)).not.toThrow();
    else expect(findAdapter(found!.name)!.parse(found!.rest).isUtility).toBe(false);
  });

  it("names only commands that exist", () => {
    const named = [...TEXT.matchAll(/`lazarus ([a-z-]+)[^`]*`/g)].map(([, name]) => name!);
    expect(named.filter((name) => findCommand(CATALOGUE, [name]) === undefined && name !== "flow")).toEqual(
      [],
    );
  });

  it("has a headless line for every adapter, and each can be resumed", () => {
    for (const adapter of BUILT_IN) {
      const line = inTables.findLast((each) => each.startsWith(`lazarus ${adapter.name} `))!;
      const args = parseSimpleCommand(line)!.words.slice(2);
      expect(adapter.parse(args), line).toMatchObject({ isHeadless: true, isUtility: false });
      const ids = ["0b0c1d2e-1111-4222-8333-444455556666", "ses_0123456789abcdef", "main"];
      const session = ids.find(adapter.isSessionId)!;
      const resumed = adapter.resume(args, session, "the note");
      // Cline resumes only in a terminal.
      if (adapter.name !== "cline") expect(resumed?.join(" "), line).toContain("the note");
    }
  });
});
