// What the durable writer writes in each round, known to the writer and to the test that judges it.

export const ROUNDS = 4;

/** Long enough that a torn write shows, and different from first to last byte between rounds. */
export function contentOfRound(round: number): string {
  return `round ${round} `.repeat(20_000);
}
