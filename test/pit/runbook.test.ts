// Every command named in the runbook, the API description or a hint exists.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CATALOGUE } from "../../src/cli/catalogue.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const isCommand = (words: readonly string[]) =>
  Object.hasOwn(CATALOGUE, words[0] ?? "") || Object.hasOwn(CATALOGUE, words.slice(0, 2).join(" "));
/** The one or two words after each `lazarus`. */
const listCommands = (text: string) =>
  [...text.matchAll(/(?<![\w./-])lazarus ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)].map(([, first, second]) =>
    [first!, second].filter((word) => word !== undefined),
  );

describe("commands", () => {
  it.each(["docs/operations.md", "docs/http.md"])("in %s exist", (file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    const code = [...text.matchAll(/```sh\n([\s\S]*?)```|`([^`\n]+)`/g)].map(
      ([, block, inline]) => block ?? inline!,
    );
    const commands = code.flatMap(listCommands);
    expect(commands.length).toBeGreaterThan(3);
    expect(commands.filter((words) => !isCommand(words))).toEqual([]);
  });

  it.each(["src/pit", "src/http", "src/integrations/gitea"])("in the hints of %s exist", (folder) => {
    const commands = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .flatMap((name) => readFileSync(join(ROOT, folder, name), "utf8").split("\n"))
      .filter((line) => /\bhint\b/.test(line))
      .flatMap(listCommands);
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.filter((words) => !isCommand(words))).toEqual([]);
  });
});
