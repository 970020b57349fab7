// Writes what the tests with real CLIs found (results.ts) into the tables of docs/agents.md:
//   npm run test:agents && node test/agents/real/report.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "./agents.ts";
import { VERSIONS } from "./install.ts";
import { KILLS, RESTORE, readResults } from "./results.ts";

const DOCUMENT = join(import.meta.dirname, "..", "..", "..", "docs", "agents.md");
const [BEGIN, END] = ["<!-- made by node test/agents/real/report.ts -->", "<!-- end of results -->"];
const ROWS = [
  ...[KILLS, RESTORE, "terminal hung up, agent killed, attached again", "529 for 60 s", "429"],
  ...["429, retry after 10 min", "401", "no key", "context too long", "unknown session", "session in use"],
  ...["transcript truncated", "transcript corrupt", "transcript replaced by garbage"],
  ...["transcript deleted, with its copy", "newer version"],
];

const names = Object.keys(AGENTS);
const results = new Map(names.map((name) => [name, readResults(name)]));
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const table = [
  line(["", ...names.map((name) => `${name} ${VERSIONS[name]!.version}`)]),
  line(["---", ...names.map(() => "---")]),
  ...ROWS.map((row) => line([row, ...names.map((name) => results.get(name)![row] ?? "not run")])),
].join("\n");

const text = readFileSync(DOCUMENT, "utf8");
const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
if (start < 0 || end < start) throw new Error(`${DOCUMENT} has no place for the results`);
writeFileSync(DOCUMENT, `${text.slice(0, start + BEGIN.length)}\n\n${table}\n\n${text.slice(end)}`);
process.stdout.write(`${table}\n`);
