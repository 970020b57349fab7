// `npm run test:crash`: kills an agent at every crash point × store × effect class, counts its effects in another process,
// and writes the table into docs/runs.md. Exits with 1 when an effect happened too often or too rarely.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { brokenPromise, type Cell, type CellResult, CLASSES, crashPointsFor, killAt } from "./kill-loop.ts";
import { startPostgres } from "./postgres-server.ts";

const DOCUMENT = join(import.meta.dirname, "..", "..", "docs", "runs.md");
const BEGIN = "<!-- kill matrix: made by npm run test:crash -->";
const END = "<!-- end of kill matrix -->";

await using server = await startPostgres();
const connection = await server.createDatabase();
const cells: Cell[] = (["sqlite", "postgres"] as const).flatMap((store) =>
  crashPointsFor(store).flatMap((point) => CLASSES.map((each) => ({ point, store, class: each }))),
);
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
      if (wrong !== undefined) broken.push(`${cell.point} × ${cell.store} × ${cell.class}: ${wrong}`);
      process.stderr.write(`\r${results.size} of ${cells.length}, ${broken.length} broken `);
    }
  }),
);
process.stderr.write("\n");

const ordered = cells.map((cell) => results.get(cell)!);
const table = formatMatrix(ordered);
process.stdout.write(table);
for (const line of broken) process.stdout.write(`BROKEN: ${line}\n`);
const text = readFileSync(DOCUMENT, "utf8");
const [head, tail] = [text.split(BEGIN)[0]!, text.split(END)[1] ?? ""];
if (text.includes(BEGIN)) writeFileSync(DOCUMENT, `${head}${BEGIN}\n\n${table}\n${END}${tail}`);
process.exitCode = broken.length > 0 ? 1 : 0;

function formatMatrix(all: readonly CellResult[]): string {
  const points = [...new Set(all.map(({ point }) => point))];
  const columns = (["sqlite", "postgres"] as const).flatMap((store) =>
    CLASSES.map((each) => ({ store, class: each })),
  );
  const head = ["killed at", ...columns.map((column) => `${column.store} ${column.class}`)];
  const rows = points.map((point) => [
    `\`${point}\``,
    ...columns.map((column) => {
      const result = all.find(
        (each) => each.point === point && each.store === column.store && each.class === column.class,
      );
      return result === undefined ? "" : formatCell(result);
    }),
  ]);
  const kills = all.reduce((sum, { kills: count }) => sum + count, 0);
  const line = (texts: readonly string[]) => `| ${texts.join(" | ")} |\n`;
  return `${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}
${all.length} cells, ${kills} kills, ${broken.length} broken promises.\n`;
}

/** How often the two effects happened; ⏸ when a human had to decide. */
function formatCell({ kills, after, parked, status }: CellResult): string {
  if (kills === 0) return "–";
  return `${after.join(" + ")}${parked ? " ⏸" : ""}${status === "completed" ? "" : ` **${status}**`}`;
}
