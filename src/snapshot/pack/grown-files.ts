// Packs files that have grown: what was appended is stored as a row that continues the file in the layers below. Those that
// also changed elsewhere are returned, to be packed as a whole.
import type { CapturedItem, CaptureItem } from "../model/capture-item.ts";
import { encodeTail, tailPath } from "../tar/tail.ts";
import type { TocEntry } from "../vault/toc-row.ts";
import type { PackPlan, PackTarget } from "./small-files.ts";

export interface GrownPlan extends PackPlan {
  /** Complete when every result was taken. */
  readonly rewritten: readonly (readonly CaptureItem[])[];
}

/** Each unit is a file followed by its hard links, which are packed as headers. */
export function planGrownFiles(
  { root, codec, writer, onBytes }: PackTarget,
  units: readonly (readonly CaptureItem[])[],
): GrownPlan {
  const captured = new Map<string, CapturedItem>();
  const rewritten: CaptureItem[][] = [];
  return {
    tasks: units.map(([item]) => ({ kind: "tail", codec, root, item: item! })),
    take(result, index) {
      const [leader, ...links] = units[index]!;
      const [found] = result.captured;
      if (found === undefined) {
        const { grownFrom: _, ...item } = leader!;
        rewritten.push([item, ...links]);
        return;
      }
      const { at, stored: length, ...item } = found;
      const after = leader!.grownFrom!.size;
      const { raw, stored } = result.member!;
      const place = { at: writer.rawLength + at!, length: length!, after };
      writer.append(stored, raw, 1);
      const items = [leader!, ...links].map(({ path }) => ({ ...item, entry: { ...item.entry, path } }));
      const rows = items.map(({ entry }): TocEntry => ({ ...entry, ...place }));
      const linkTo = tailPath(leader!.path, after);
      const headers = rows.slice(1).map((row) => encodeTail(row, { linkTo, storedSize: 0 }));
      writer.appendRaw(Buffer.concat(headers), headers.length);
      writer.enter(rows);
      for (const each of items) captured.set(each.entry.path, each);
      onBytes(raw.length);
    },
    packed: { captured, missed: [] },
    rewritten,
  };
}
