// Counts for people. Pure.

/** 1, "checkpoint" → "1 checkpoint"; 2 → "2 checkpoints". */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
