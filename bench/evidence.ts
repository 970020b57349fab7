// Collects every row with a goal from docs/bench into the table of docs/evidence.md. `npm run bench -- … --write` calls
// it; it can also run directly.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DOCS = join(import.meta.dirname, "..", "docs");
const EVIDENCE = join(DOCS, "evidence.md");
const BETWEEN = /(<!-- figures -->\n).*(<!-- \/figures -->)/s;

/** docs/evidence.md with the current figures of docs/bench. */
export function withFigures(text: string): string {
  const rows = readdirSync(join(DOCS, "bench"))
    .sort()
    .flatMap((file) => goalsIn(file.replace(/\.md$/, ""), readFileSync(join(DOCS, "bench", file), "utf8")));
  const missed = rows.filter(([, , , , , verdict]) => verdict !== "met").length;
  const head = ["bench", "what", "ours", "peer", "ratio (goal)", "verdict"];
  const table = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  return text.replace(BETWEEN, `$1\n${rows.length} goals, ${missed} missed.\n\n${table}\n$2`);
}

function goalsIn(name: string, text: string): string[][] {
  return text
    .split("\n")
    .filter((line) => /^\| .*\| ≤ /.test(line))
    .map((line) => {
      const cells = line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim());
      const [what, ours, oursFigure, peer, peerFigure, ratio, goal, verdict] = cells as [string, ...string[]];
      const figure = (who?: string, value?: string) => `${who}: ${withUnit(value ?? "")}`;
      return [
        `[${name}](bench/${name}.md)`,
        what,
        figure(ours, oursFigure),
        figure(peer, peerFigure),
        `${ratio} (${goal})`,
        verdict ?? "",
      ];
    });
}

function withUnit(figure: string): string {
  return /[a-z%]/i.test(figure) ? figure : `${figure} ms`;
}

export function writeFigures(): void {
  writeFileSync(EVIDENCE, withFigures(readFileSync(EVIDENCE, "utf8")));
}

if (import.meta.main) writeFigures();
