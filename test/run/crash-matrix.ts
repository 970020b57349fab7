// `npm run test:crash`: kills an executor and a durable agent (generate and stream) at every crash point × store × effect
// class, counts their effects in another process, and writes the tables into docs/runs.md. Exits with 1 when an effect
// happened too often or too rarely. `npm run test:crash -- durable` or `-- executor` runs one of them.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { brokenPromise, type Cell, type CellResult, CLASSES, enginePoints, killAt } from "./kill-loop.ts";
import { startPostgres } from "./postgres-server.ts";

const DOCUMENT = join(import.meta.dirname, "..", "..", "docs", "runs.md");
const STORES = ["sqlite", "postgres"] as const;
const MODES = ["generate", "stream"] as const;

await using server = await startPostgres();
const connection = await server.createDatabase();
const executorCells: Cell[] = STORES.flatMap((store) =>
  enginePoints().flatMap((point) => CLASSES.map((each) => ({ point, store, class: each }))),
);
const durableCells: Cell[] = MODES.flatMap((durable) =>
  STORES.flatMap((store) =>
    enginePoints().flatMap((point) => CLASSES.map((each) => ({ point, store, class: each, durable }))),
  ),
);
const [only] = process.argv.slice(2);
const isWanted = (name: string) => only === undefined || only === name;
const cells = [...(isWanted("executor") ? executorCells : []), ...(isWanted("durable") ? durableCells : [])];
const results = new Map<Cell, CellResult>();
const broken: string[] = [];
let next = 0;
await Promise.all(
  Array.from({ length: Math.max(2, availableParallelism()) }, async () => {
    while (next < cells.length) {
      const cell = cells[next++]!;
      const result = await killAt(cell, connection);
      results.set(cell, result);
      const wrong = brokenPromise(result);
      if (wrong !== undefined)
        broken.push(`${cell.durable ?? ""} ${cell.point} × ${cell.store} × ${cell.class}: ${wrong}`);
      process.stderr.write(`\r${results.size} of ${cells.length}, ${broken.length} broken `);
    }
  }),
);
process.stderr.write("\n");

if (isWanted("executor")) writeTable("kill matrix", executorCells);
if (isWanted("durable")) writeTable("kill matrix of durable agents", durableCells);
for (const line of broken) process.stdout.write(`BROKEN: ${line}\n`);
process.exitCode = broken.length > 0 ? 1 : 0;

function writeTable(name: string, part: readonly Cell[]): void {
  const table = formatMatrix(part.map((cell) => results.get(cell)!));
  process.stdout.write(table);
  const [begin, end] = [`<!-- ${name}: made by npm run test:crash -->`, `<!-- end of ${name} -->`];
  const text = readFileSync(DOCUMENT, "utf8");
  const [head, tail] = [text.split(begin)[0]!, text.split(end)[1] ?? ""];
  if (text.includes(begin)) writeFileSync(DOCUMENT, `${head}${begin}\n\n${table}\n${end}${tail}`);
}

function formatMatrix(all: readonly CellResult[]): string {
  const points = [...new Set(all.map(({ point }) => point))];
  const columns = STORES.flatMap((store) => CLASSES.map((each) => ({ store, class: each })));
  const head = ["killed at", ...columns.map((column) => `${column.store} ${column.class}`)];
  const rows = points.map((point) => [
    `\`${point}\``,
    ...columns.map((column) => {
      const found = all.filter(
        (each) => each.point === point && each.store === column.store && each.class === column.class,
      );
      // The cells of generate and stream are one unless they differ.
      return [...new Set(found.map(formatCell))]
        .filter((text, _, texts) => texts.length < 2 || text !== "–")
        .join(", ");
    }),
  ]);
  const kills = all.reduce((sum, { kills: count }) => sum + count, 0);
  const line = (texts: readonly string[]) => `| ${texts.join(" | ")} |\n`;
  return `${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}
${all.length} cells, ${kills} kills, ${all.filter((each) => brokenPromise(each) !== undefined).length} broken promises.\n`;
}

/** How often the two effects happened; ⏸ when a human had to decide. */
function formatCell({ kills, after, parked, status }: CellResult): string {
  if (kills === 0) return "–";
  return `${after.join(" + ")}${parked ? " ⏸" : ""}${status === "completed" ? "" : ` **${status}**`}`;
}
