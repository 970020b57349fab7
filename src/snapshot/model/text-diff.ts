// Unified diffs of two texts. Bounded: texts that differ in more than MAX_EDITS lines are shown as one replaced block.
import { structuredPatch } from "diff";

const MAX_EDITS = 1000;
const CONTEXT_LINES = 3;

/** The hunks of a unified diff, without file headers; "" when the texts are equal. */
export function unifiedDiff(before: string, after: string): string {
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_EDITS };
  const patch = structuredPatch("", "", before, after, undefined, undefined, options);
  return (patch?.hunks ?? [replaceAll(before, after)])
    .map(({ oldStart, oldLines, newStart, newLines, lines }) => {
      const header = `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
      return `${[header, ...lines].join("\n")}\n`;
    })
    .join("");
}

function replaceAll(before: string, after: string) {
  const removed = before.split(/(?<=\n)/);
  const added = after.split(/(?<=\n)/);
  const mark = (sign: string, line: string) =>
    line.endsWith("\n") ? [sign + line.slice(0, -1)] : [sign + line, "\\ No newline at end of file"];
  const lines = [...removed.flatMap((line) => mark("-", line)), ...added.flatMap((line) => mark("+", line))];
  return { oldStart: 1, oldLines: removed.length, newStart: 1, newLines: added.length, lines };
}

/** As GNU diff writes it: a count of 1 is left out, and an empty range is named by the line before it. */
function range(start: number, count: number): string {
  if (count === 0) return `${start - 1},0`;
  return count === 1 ? `${start}` : `${start},${count}`;
}
