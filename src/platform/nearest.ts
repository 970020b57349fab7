// Suggests the known word that is closest to a mistyped one.

/** Longer than any known word; the rest is ignored. */
const LONGEST = 40;

/** The closest of `words`, if it is close enough to be a typo. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const start = typed.slice(0, LONGEST);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(start.length / 3)) + 1;
  for (const word of words) {
    const distance = editDistance(start, word);
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}

/** Counts insertions, deletions, substitutions and transpositions. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1]! + 1, last[j]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
