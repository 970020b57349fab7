// Links and file names in the documents exist.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

test.each(documents)("%s links only to files that exist", (document) => {
  const text = readFileSync(join(ROOT, document), "utf8");
  const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(document), target));
  const files = [...text.matchAll(/`((?:src|test|docs|bench|examples|scripts)\/[\w./-]+\.[a-z]+)`/g)].map(
    ([, path]) => path!,
  );
  expect([...links, ...files].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
