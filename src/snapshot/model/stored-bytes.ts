// Where the stored bytes of a file belong: of a sparse file, only the extents are stored, end to end. Pure.
import type { Entry } from "./entry.ts";

const WHOLE = [0, Number.POSITIVE_INFINITY] as const;

/** Returns a function that takes the stored bytes in order, and calls `use` with each part and its offset in the file. */
export function placeStored(
  extents: Entry["extents"],
  use: (part: Buffer, offset: number) => void,
): (chunk: Buffer) => void {
  let index = 0;
  let done = 0;
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      const extent = extents === undefined ? WHOLE : extents[index];
      if (extent === undefined) return;
      const [offset, length] = extent;
      const part = rest.subarray(0, length - done);
      if (part.length > 0) use(part, offset + done);
      done += part.length;
      rest = rest.subarray(part.length);
      if (done < length) continue;
      index += 1;
      done = 0;
    }
  };
}
