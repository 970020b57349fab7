// Writes what the tests with real CLIs found (results.ts) into the tables of docs/agents.md. A field without a result on this
// machine keeps what an earlier run found for the same version:
//   npm run test:agents; node test/agents/real/compare.ts; node test/agents/real/report.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "./agents.ts";
import { VERSIONS } from "./install.ts";
import { CONTINUED, KILLS, RESTART, RESTORE, readResults, TMUX } from "./results.ts";

const DOCUMENT = join(import.meta.dirname, "..", "..", "..", "docs", "agents.md");
const ROWS = [
  ...[KILLS, RESTORE, "terminal hung up, agent killed, attached again", "529 for 60 s", "429"],
  ...["429, retry after 10 min", "401", "no key", "context too long", "unknown session", "session in use"],
  ...["transcript truncated", "transcript corrupt", "transcript replaced by garbage"],
  "transcript replaced by a link",
  ...["transcript deleted, with its copy", "newer version"],
];

const names = Object.keys(AGENTS);
const results = new Map(names.map((name) => [name, readResults(name)]));
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const title = (name: string) => `${name} ${VERSIONS[name]!.version}`;
let text = readFileSync(DOCUMENT, "utf8");

/** The field of a table in the document; undefined when it is not there. */
function kept(column: string, row: string): string | undefined {
  const lines = text
    .split("\n")
    .map((each) => each.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, "")));
  const at = lines.find((cells) => cells.includes(column) && cells[0] === "")?.indexOf(column) ?? -1;
  const found = at < 0 ? undefined : lines.find((cells) => cells[0] === row)?.[at];
  return found === "not run" ? undefined : found;
}

const table = [
  line(["", ...names.map(title)]),
  line(["---", ...names.map(() => "---")]),
  ...ROWS.map((row) =>
    line([row, ...names.map((name) => results.get(name)![row] ?? kept(title(name), row) ?? "not run")]),
  ),
].join("\n");
const restart = (name: string) => results.get(name)![RESTART] ?? kept("the same command again", title(name));
const continued = (name: string) =>
  results.get(name)![CONTINUED] ?? kept("the CLI's own resume", title(name)) ?? "none";
const resurrected = (name: string) =>
  results.get(name)![TMUX] ?? kept("tmux-resurrect", title(name)) ?? "not run";
const compared = names.filter((name) => restart(name) !== undefined);
const comparison = [
  line(["", "the same command again", "the CLI's own resume", "tmux-resurrect"]),
  line(["---", "---", "---", "---"]),
  ...compared.map((name) => line([title(name), restart(name)!, continued(name), resurrected(name)])),
].join("\n");

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
