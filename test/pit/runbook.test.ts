// Every command that the runbook, the description of the API or a hint tells people to type is there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CATALOGUE } from "../../src/cli/catalogue.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const isCommand = (words: readonly string[]) =>
  Object.hasOwn(CATALOGUE, words[0] ?? "") || Object.hasOwn(CATALOGUE, words.slice(0, 2).join(" "));
/** `lazarus` at the beginning of a word, and the two words after it. */
const told = (text: string) =>
  [...text.matchAll(/(?<![\w./-])lazarus ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)].map(([, one, two]) =>
    [one!, two].filter((word) => word !== undefined),
  );

describe("commands that are told of", () => {
  it.each(["docs/operations.md", "docs/http.md"])("in %s exist", (file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    const code = [...text.matchAll(/```sh\n([\s\S]*?)```|`([^`\n]+)`/g)].map(
      ([, block, inline]) => block ?? inline!,
    );
    const commands = code.flatMap(told);
    expect(commands.length).toBeGreaterThan(3);
    expect(commands.filter((words) => !isCommand(words))).toEqual([]);
  });

  it.each(["src/pit", "src/http", "src/integrations/gitea"])("in the hints of %s exist", (room) => {
    const commands = readdirSync(join(ROOT, room))
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .flatMap((name) => readFileSync(join(ROOT, room, name), "utf8").split("\n"))
      .filter((line) => /\bhint\b/.test(line))
      .flatMap(told);
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.filter((words) => !isCommand(words))).toEqual([]);
  });
});
