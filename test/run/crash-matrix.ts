// `npm run test:crash`: kills an executor and a durable agent (generate and stream) at every crash point × store × effect
// class, counts their effects in this process, and writes the tables into docs/runs.md. Exits with 1 when an effect
// happened too often or too rarely. `npm run test:crash -- durable` or `-- executor` runs one of them.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import setUp from "../global-setup.ts";
import type { CaseResult, MatrixCase } from "./kill-loop.ts";
import { startPostgres } from "./postgres-server.ts";

// As in a test run, the agents are bundles that share a compile cache: they start about a thousand times.
const tearDown = setUp();
process.once("exit", () => tearDown?.());
const { findViolation, CLASSES, enginePoints, killAtPasses } = await import("./kill-loop.ts");

const DOCUMENT = join(import.meta.dirname, "..", "..", "docs", "runs.md");
const STORES = ["sqlite", "postgres"] as const;
const MODES = ["generate", "stream"] as const;

await using server = await startPostgres();
const connection = await server.createDatabase();
const executorCases: MatrixCase[] = STORES.flatMap((store) =>
  enginePoints().flatMap((point) => CLASSES.map((each) => ({ point, store, class: each }))),
);
const durableCases: MatrixCase[] = MODES.flatMap((durable) =>
  STORES.flatMap((store) =>
    enginePoints().flatMap((point) => CLASSES.map((each) => ({ point, store, class: each, durable }))),
  ),
);
const [only] = process.argv.slice(2);
const isWanted = (name: string) => only === undefined || only === name;
const cases = [...(isWanted("executor") ? executorCases : []), ...(isWanted("durable") ? durableCases : [])];
const results = new Map<MatrixCase, CaseResult[]>();
const violations: string[] = [];
let next = 0;
await Promise.all(
  // More than processors: an agent often waits for its store.
  Array.from({ length: 2 * availableParallelism() }, async () => {
    while (next < cases.length) {
      const matrixCase = cases[next++]!;
      const found = await killAtPasses(matrixCase, connection);
      results.set(matrixCase, found);
      for (const result of found) {
        const violation = findViolation(result);
        if (violation !== undefined)
          violations.push(
            `${matrixCase.durable ?? ""} ${result.point} × ${matrixCase.store} × ${matrixCase.class}: ${violation}`,
          );
      }
      process.stderr.write(
        `${process.stderr.isTTY ? "\r" : "\n"}${results.size} of ${cases.length}, ${violations.length} violations `,
      );
    }
  }),
);
process.stderr.write("\n");

if (isWanted("executor")) writeTable("kill matrix", executorCases);
if (isWanted("durable")) writeTable("kill matrix of durable agents", durableCases);
for (const line of violations) process.stdout.write(`VIOLATION: ${line}\n`);
process.exitCode = violations.length > 0 ? 1 : 0;

function writeTable(name: string, part: readonly MatrixCase[]): void {
  const table = formatMatrix(part);
  process.stdout.write(table);
  const [begin, end] = [`<!-- ${name}: made by npm run test:crash -->`, `<!-- end of ${name} -->`];
  const text = readFileSync(DOCUMENT, "utf8");
  const [head, tail] = [text.split(begin)[0]!, text.split(end)[1] ?? ""];
  if (text.includes(begin)) writeFileSync(DOCUMENT, `${head}${begin}\n\n${table}\n${end}${tail}`);
}

function formatMatrix(part: readonly MatrixCase[]): string {
  const points = [...new Set(part.map(({ point }) => point))];
  const columns = STORES.flatMap((store) => CLASSES.map((each) => ({ store, class: each })));
  const head = ["killed at", ...columns.map((column) => `${column.store} ${column.class}`)];
  const rows = points.map((point) => [
    `\`${point}\``,
    ...columns.map((column) => {
      const found = part.filter(
        (each) => each.point === point && each.store === column.store && each.class === column.class,
      );
      // Cases of generate and stream, and of several passes, are shown once unless they differ.
      return [...new Set(found.flatMap((each) => results.get(each)!).map(formatCase))]
        .filter((text, _, texts) => texts.length < 2 || text !== "–")
        .toSorted()
        .join(", ");
    }),
  ]);
  const all = part.flatMap((each) => results.get(each)!);
  const kills = all.reduce((sum, { kills: count }) => sum + count, 0);
  const line = (texts: readonly string[]) => `| ${texts.join(" | ")} |\n`;
  return `${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}
${part.length} cases, ${kills} kills, ${all.filter((each) => findViolation(each) !== undefined).length} violations.\n`;
}

/** How often the two effects happened; ⏸ when a human had to decide. */
function formatCase({ kills, after, parked, status }: CaseResult): string {
  if (kills === 0) return "–";
  return `${after.join(" + ")}${parked ? " ⏸" : ""}${status === "completed" ? "" : ` **${status}**`}`;
}
