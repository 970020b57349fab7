// What durable-writer.ts writes in each round; shared with the test that checks it.

export const ROUNDS = 4;

/** Long enough that a torn write shows, and different in each round. */
export function contentOfRound(round: number): string {
  return `round ${round} `.repeat(20_000);
}
