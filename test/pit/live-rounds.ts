// Random changes, and live points taken from what the watch reports, some of them while the changes continue. After each part, the newest
// point must equal the cell.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { createRandom } from "../../src/testing/index.ts";
import { createLiveLab } from "./live-lab.ts";
import { createPlace, fillTree, mutateTree, wasLinked } from "./watch-rounds.ts";

/** Returns how many of the compared points were taken from a set. */
export async function liveRound(seed: number): Promise<number> {
  const random = createRandom(seed);
  await using lab = await createLiveLab(fillTree);
  const outside = join(lab.directory, "outside");
  mkdirSync(outside);
  const place = createPlace(random, { root: lab.worktree, outside });
  let fromSets = 0;
  for (let part = 0; part < 4; part += 1) {
    const points: Promise<void>[] = [];
    await mutateTree(place, random.int(1, 40), () => void points.push(lab.point()));
    await Promise.all(points);
    await lab.point();
    if (lab.lastSet.unknown === null) fromSets += 1;
    // A write through a name that is gone again is found by the next audit.
    const pathOf = (line: string): string => JSON.parse(line).path;
    const differences = (await lab.differences()).filter((line) => !wasLinked(place, pathOf(line)));
    expect(differences, `seed ${seed}, part ${part}`).toEqual([]);
  }
  await lab.point({ isAudit: true });
  expect(await lab.differences(), `audit of seed ${seed}`).toEqual([]);
  expect(lab.live.unseen.missed, `seed ${seed}`).toBe(0);
  return fromSets;
}
