// `npm run bench -- [name…] [--write] [--rounds N] [--only TEXT,…] [--large] [--files N] [--points N] [--kills N]`:
// runs bench/<name>.bench.ts, or all of them, and prints a table. --write stores it in docs/bench/<name>.md with the command that
// made it; --only runs the contests whose names contain one of the texts, and writes nothing; --large adds measurements that
// take many minutes; --files, --points and --kills change the size of some. Lists missed goals at the end and exits 1 if there are any.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeFigures } from "./evidence.ts";
import { type Bench, compete, formatScores, isMet, type Score } from "./harness.ts";

const BENCH = import.meta.dirname;
const ROOT = join(BENCH, "..");
const SUFFIX = ".bench.ts";
const SIZES = ["files", "points", "kills"] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: "boolean", default: false },
    large: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    files: { type: "string" },
    points: { type: "string" },
    kills: { type: "string" },
  },
});
const known = readdirSync(BENCH)
  .filter((name) => name.endsWith(SUFFIX))
  .map((name) => name.slice(0, -SUFFIX.length))
  .sort();
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`unknown bench: ${unknown.join(", ")}; known: ${known.join(", ")}\n`);
  process.exit(2);
}

if (values.write && values.only !== undefined) {
  process.stderr.write("--write stores whole tables: leave out --only\n");
  process.exit(2);
}
const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
  process.stderr.write(`--rounds takes a number of rounds, not "${values.rounds}"\n`);
  process.exit(2);
}

const missed: string[] = [];
for (const name of positionals.length > 0 ? positionals : known) {
  process.stderr.write(`bench ${name}\n`);
  const { bench } = (await import(`./${name}${SUFFIX}`)) as { bench: Bench };
  const scores = await runBench(name, bench);
  for (const score of scores.filter((each) => !isMet(each)))
    missed.push(`${name}: ${score.name}, ${score.ratio.toFixed(2)} × ${score.peer} (goal ${score.goal})`);
  process.stdout.write(`${formatScores(scores)}\n${formatNotes(bench)}`);
  if (values.write) writeDocument(name, bench, scores);
}
process.stdout.write(
  missed.length === 0 ? "all goals met\n" : `goals missed:\n${missed.map((line) => `- ${line}\n`).join("")}`,
);
process.exitCode = missed.length > 0 ? 1 : 0;

function sizeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function isWanted(name: string): boolean {
  return values.only === undefined || values.only.split(",").some((text) => name.includes(text));
}

async function runBench(name: string, bench: Bench): Promise<Score[]> {
  const directory = join(BENCH, ".work", `${name}-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  const [files, points, kills] = SIZES.map((size) => sizeOf(values[size]));
  const sizes = { large: values.large, rounds, files, points, kills };
  try {
    const scores: Score[] = [];
    for (const contest of await bench.prepare(directory, sizes)) {
      if (!isWanted(contest.name)) continue;
      process.stderr.write(`  ${contest.name} …\n`);
      if ("measure" in contest) {
        scores.push(...(await contest.measure()));
        continue;
      }
      scores.push(await compete({ ...contest, rounds: rounds ?? contest.rounds }));
    }
    return scores;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function formatNotes(bench: Bench): string {
  const notes = bench.notes?.() ?? [];
  return notes.length === 0 ? "" : `${notes.map((note) => `- ${note}\n`).join("")}\n`;
}

/** The flags that decide what the figures are made from. */
function flags(): string {
  const given = (["rounds", ...SIZES] as const).filter((flag) => values[flag] !== undefined);
  return given.map((flag) => ` --${flag} ${values[flag]}`).join("");
}

function writeDocument(name: string, bench: Bench, scores: readonly Score[]): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release().split(/[-+]/)[0]}`;
  const path = join(ROOT, "docs", "bench", `${name}.md`);
  mkdirSync(join(ROOT, "docs", "bench"), { recursive: true });
  writeFileSync(
    path,
    `# Bench: ${name}

${bench.about}

Made by \`npm run bench -- ${name} --write${values.large ? " --large" : ""}${flags()}\` with Node ${process.versions.node}
on ${machine}.
Ours and the peer take turns in one run. The ratio is the median over all rounds of ours ÷ peer; times are medians.

${`${formatScores(scores)}\n${formatNotes(bench)}`.trimEnd()}
`,
  );
  writeFigures();
  process.stderr.write(`  written to ${path.slice(ROOT.length + 1)}\n`);
}
