// Writes what the tests with real CLIs found (results.ts) into the tables of docs/agents.md:
//   npm run test:agents; node test/agents/real/compare.ts; node test/agents/real/report.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "./agents.ts";
import { VERSIONS } from "./install.ts";
import { CONTINUED, KILLS, RESTART, RESTORE, readResults } from "./results.ts";

const DOCUMENT = join(import.meta.dirname, "..", "..", "..", "docs", "agents.md");
const ROWS = [
  ...[KILLS, RESTORE, "terminal hung up, agent killed, attached again", "529 for 60 s", "429"],
  ...["429, retry after 10 min", "401", "no key", "context too long", "unknown session", "session in use"],
  ...["transcript truncated", "transcript corrupt", "transcript replaced by garbage"],
  ...["transcript deleted, with its copy", "newer version"],
];

const names = Object.keys(AGENTS);
const results = new Map(names.map((name) => [name, readResults(name)]));
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const title = (name: string) => `${name} ${VERSIONS[name]!.version}`;
const table = [
  line(["", ...names.map(title)]),
  line(["---", ...names.map(() => "---")]),
  ...ROWS.map((row) => line([row, ...names.map((name) => results.get(name)![row] ?? "not run")])),
].join("\n");
const compared = names.filter((name) => results.get(name)![RESTART] !== undefined);
const comparison = [
  line(["", "the same command again", "the CLI's own resume"]),
  line(["---", "---", "---"]),
  ...compared.map((name) =>
    line([title(name), results.get(name)![RESTART]!, results.get(name)![CONTINUED] ?? "none"]),
  ),
].join("\n");

let text = readFileSync(DOCUMENT, "utf8");
for (const [name, rows] of [
  ["results", table],
  ["comparison", comparison],
] as const) {
  const [begin, finish] = [
    `<!-- ${name}: made by node test/agents/real/report.ts -->`,
    `<!-- end of ${name} -->`,
  ];
  const [start, end] = [text.indexOf(begin), text.indexOf(finish)];
  if (start < 0 || end < start) throw new Error(`${DOCUMENT} has no place for the ${name}`);
  text = `${text.slice(0, start + begin.length)}\n\n${rows}\n\n${text.slice(end)}`;
  process.stdout.write(`${rows}\n\n`);
}
writeFileSync(DOCUMENT, text);
