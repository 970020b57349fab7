// Text tables, fitted to the terminal width by shortening the columns that allow it.
import { escapeControls } from "./paint.ts";
import { displayWidth, shorten } from "./width.ts";

export interface Column<Row> {
  readonly head: string;
  cell(row: Row): string;
  /** Applied after fitting, so that color codes do not count as width. */
  paint?(text: string, row: Row): string;
  readonly alignRight?: boolean;
  /** May be shortened to fit, down to 8 characters; the widest such column is shortened first. */
  readonly shrinks?: boolean;
}

const GAP = "  ";
const MIN_WIDTH = 8;

/** `noteAbove` is a line above a row that does not count for the columns. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
  noteAbove: (row: Row) => string | undefined = () => undefined,
): string {
  const cells = rows.map((row) => columns.map((column) => escapeControls(column.cell(row))));
  const widths = columns.map((column, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i]!)), column.head.length),
  );
  fit(widths, columns, width);
  const line = (texts: readonly string[], paint: (text: string, i: number) => string) =>
    texts
      .map((text, i) => {
        const short = shorten(text, widths[i]!);
        const pad = " ".repeat(widths[i]! - displayWidth(short));
        const painted = paint(short, i);
        if (columns[i]!.alignRight) return pad + painted;
        return i === columns.length - 1 ? painted : painted + pad;
      })
      .join(GAP);
  const head = line(
    columns.map((column) => column.head),
    (text) => text,
  );
  const body = cells.flatMap((texts, r) => {
    const row = rows[r]!;
    const note = noteAbove(row);
    const text = line(texts, (each, i) => columns[i]!.paint?.(each, row) ?? each);
    return note === undefined ? [text] : [note, text];
  });
  return [head, ...body].map((text) => `${text.trimEnd()}\n`).join("");
}

function fit<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  const total = () => widths.reduce((sum, each) => sum + each, 0) + GAP.length * (widths.length - 1);
  while (total() > width) {
    let widest = -1;
    for (const [i, column] of columns.entries()) {
      if (column.shrinks && widths[i]! > MIN_WIDTH && (widest < 0 || widths[i]! > widths[widest]!))
        widest = i;
    }
    if (widest < 0) return;
    widths[widest]! -= 1;
  }
}
