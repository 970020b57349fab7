// How a value is stored by what changed since its last version: the bytes between the longest common beginning and end.
// A list that grows by one message costs one message, whatever its length: 400 steps of 2 KB are 1 MB and not 167.
// Pure; a property test holds that every chain of deltas gives back its last value.

/** A value in terms of an earlier one: its first `keep` bytes, then `middle`, then its last `tail` bytes. */
export interface Delta {
  readonly keep: number;
  readonly tail: number;
  readonly middle: Uint8Array;
}

/** One link of a chain: a delta on the link before it, or a whole value when it is the first. */
export interface Link {
  readonly keep: number;
  readonly tail: number;
  readonly body: Uint8Array;
}

const STRIDE = 4096;

/** What must be stored of `next` when `base` is there. */
export function diffBytes(base: Uint8Array, next: Uint8Array): Delta {
  const shorter = Math.min(base.length, next.length);
  const keep = commonStart(base, next, shorter);
  let tail = 0;
  const most = shorter - keep;
  while (tail < most && base[base.length - 1 - tail] === next[next.length - 1 - tail]) tail += 1;
  return { keep, tail, middle: next.subarray(keep, next.length - tail) };
}

/** The same for values in pieces. Pieces that both begin with are the same objects and are not looked into. */
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

/** Compared in strides by the runtime's own memcmp, then byte by byte in the stride that differs. */
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

/** The value at the end of a chain, oldest link first. Pieces are moved, never copied, until the end. */
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
    // What lies behind `keep` is taken off; its last `tail` bytes come back behind the new middle.
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
