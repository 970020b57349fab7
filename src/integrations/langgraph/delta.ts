// Deltas between versions of a value: the bytes between the longest common prefix and suffix. A list that grows by one
// message costs one message regardless of its length: 400 steps of 2 KB take 1 MB instead of 167. Pure; a property test
// checks that every chain of deltas reproduces its last value.

/** A value relative to an earlier one: its first `keep` bytes, then `middle`, then its last `tail` bytes. */
export interface Delta {
  readonly keep: number;
  readonly tail: number;
  readonly middle: Uint8Array;
}

/** One link of a chain: a delta against the previous link, or a whole value if it is the first. */
export interface Link {
  readonly keep: number;
  readonly tail: number;
  readonly body: Uint8Array;
}

const STRIDE = 4096;

/** The delta from `base` to `next`. */
export function diffBytes(base: Uint8Array, next: Uint8Array): Delta {
  const shorter = Math.min(base.length, next.length);
  const keep = commonStart(base, next, shorter);
  let tail = 0;
  const most = shorter - keep;
  while (tail < most && base[base.length - 1 - tail] === next[next.length - 1 - tail]) tail += 1;
  return { keep, tail, middle: next.subarray(keep, next.length - tail) };
}

/** `diffBytes` for values in pieces. Leading pieces that are the same objects are not compared byte by byte. */
export function diffPieces(base: readonly Uint8Array[], next: readonly Uint8Array[]): Delta {
  let same = 0;
  let kept = 0;
  while (same < base.length && same < next.length && base[same] === next[same]) {
    kept += base[same]!.length;
    same += 1;
  }
  const { keep, tail, middle } = diffBytes(joinFrom(base, same), joinFrom(next, same));
  return { keep: kept + keep, tail, middle };
}

function joinFrom(pieces: readonly Uint8Array[], first: number): Uint8Array {
  return pieces.length === first + 1 ? pieces[first]! : Buffer.concat(pieces.slice(first));
}

/** Compares in strides with memcmp, then byte by byte in the stride that differs. */
function commonStart(a: Uint8Array, b: Uint8Array, length: number): number {
  let at = 0;
  while (
    at + STRIDE <= length &&
    Buffer.compare(a.subarray(at, at + STRIDE), b.subarray(at, at + STRIDE)) === 0
  ) {
    at += STRIDE;
  }
  while (at < length && a[at] === b[at]) at += 1;
  return at;
}

/** The value at the end of a chain, oldest link first. Pieces are only concatenated at the end. */
export function joinLinks(links: readonly Link[]): Uint8Array {
  let pieces: Uint8Array[] = [];
  let length = 0;
  for (const [i, { keep, tail, body }] of links.entries()) {
    if (i === 0) {
      pieces = [body];
      length = body.length;
      continue;
    }
    const end: Uint8Array[] = [];
    // Remove everything after `keep`; its last `tail` bytes are appended again after the new middle.
    for (let drop = length - keep; drop > 0; ) {
      const last = pieces.pop()!;
      const taken = last.length <= drop ? last : last.subarray(last.length - drop);
      if (taken.length < last.length) pieces.push(last.subarray(0, last.length - taken.length));
      end.unshift(taken);
      drop -= taken.length;
    }
    for (let skip = length - keep - tail; skip > 0; ) {
      const first = end.shift()!;
      if (first.length > skip) end.unshift(first.subarray(skip));
      skip -= first.length;
    }
    if (body.length > 0) pieces.push(body);
    pieces.push(...end);
    length = keep + body.length + tail;
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length);
}
