// `npm run test:crash`: kills an executor and a durable agent (generate and stream) at every crash point × store × effect
// class, counts their effects in this process, and writes the tables into docs/runs.md. Exits with 1 when an effect
// happened too often or too rarely. `npm run test:crash -- durable` or `-- executor` runs one of them.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import setUp from "../global-setup.ts";
import type { Cell, CellResult } from "./kill-loop.ts";
import { startPostgres } from "./postgres-server.ts";

// As in a test run, the agents are bundles that share a compile cache: they start about a thousand times.
const tearDown = setUp();
process.once("exit", () => tearDown?.());
const { brokenPromise, CLASSES, enginePoints, killAtPasses } = await import("./kill-loop.ts");

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
const results = new Map<Cell, CellResult[]>();
const broken: string[] = [];
let next = 0;
await Promise.all(
  // More than processors: an agent often waits for its store.
  Array.from({ length: 2 * availableParallelism() }, async () => {
    while (next < cells.length) {
      const cell = cells[next++]!;
      const found = await killAtPasses(cell, connection);
      results.set(cell, found);
      for (const result of found) {
        const wrong = brokenPromise(result);
        if (wrong !== undefined)
          broken.push(`${cell.durable ?? ""} ${result.point} × ${cell.store} × ${cell.class}: ${wrong}`);
      }
      process.stderr.write(
        `${process.stderr.isTTY ? "\r" : "\n"}${results.size} of ${cells.length}, ${broken.length} broken `,
      );
    }
  }),
);
process.stderr.write("\n");

if (isWanted("executor")) writeTable("kill matrix", executorCells);
if (isWanted("durable")) writeTable("kill matrix of durable agents", durableCells);
for (const line of broken) process.stdout.write(`BROKEN: ${line}\n`);
process.exitCode = broken.length > 0 ? 1 : 0;

function writeTable(name: string, part: readonly Cell[]): void {
  const table = formatMatrix(part);
  process.stdout.write(table);
  const [begin, end] = [`<!-- ${name}: made by npm run test:crash -->`, `<!-- end of ${name} -->`];
  const text = readFileSync(DOCUMENT, "utf8");
  const [head, tail] = [text.split(begin)[0]!, text.split(end)[1] ?? ""];
  if (text.includes(begin)) writeFileSync(DOCUMENT, `${head}${begin}\n\n${table}\n${end}${tail}`);
}

function formatMatrix(part: readonly Cell[]): string {
  const points = [...new Set(part.map(({ point }) => point))];
  const columns = STORES.flatMap((store) => CLASSES.map((each) => ({ store, class: each })));
  const head = ["killed at", ...columns.map((column) => `${column.store} ${column.class}`)];
  const rows = points.map((point) => [
    `\`${point}\``,
    ...columns.map((column) => {
      const found = part.filter(
        (each) => each.point === point && each.store === column.store && each.class === column.class,
      );
      // The cells of generate and stream, and of several passes, are one unless they differ.
      return [...new Set(found.flatMap((cell) => results.get(cell)!).map(formatCell))]
        .filter((text, _, texts) => texts.length < 2 || text !== "–")
        .toSorted()
        .join(", ");
    }),
  ]);
  const all = part.flatMap((cell) => results.get(cell)!);
  const kills = all.reduce((sum, { kills: count }) => sum + count, 0);
  const line = (texts: readonly string[]) => `| ${texts.join(" | ")} |\n`;
  return `${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}
${part.length} cells, ${kills} kills, ${all.filter((each) => brokenPromise(each) !== undefined).length} broken promises.\n`;
}

/** How often the two effects happened; ⏸ when a human had to decide. */
function formatCell({ kills, after, parked, status }: CellResult): string {
  if (kills === 0) return "–";
  return `${after.join(" + ")}${parked ? " ⏸" : ""}${status === "completed" ? "" : ` **${status}**`}`;
}
