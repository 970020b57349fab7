// 1,000 SIGKILLs of `flow exec` at random moments. After the last re-run every step is in the external log exactly
// once or was reported as unknown; none is missing or silently repeated. Failures print their seed.
import { expect, it } from "vitest";
import { killAtRandom } from "../flow/exec-kills.ts";

const LANES = 4;
const KILLS = 1000;

it(`${KILLS} random kills of flow exec`, { timeout: 30 * 60_000 }, async () => {
  const seed = Number(process.env.LAZARUS_SEED ?? Math.floor(Math.random() * 1e9));
  process.stderr.write(`seed ${seed}\n`);
  const tallies = await Promise.all(
    Array.from({ length: LANES }, (_, lane) => killAtRandom(KILLS / LANES, seed + lane)),
  );
  const sum = (pick: (tally: (typeof tallies)[number]) => number) =>
    tallies.reduce((all, each) => all + pick(each), 0);
  process.stderr.write(
    `${sum((each) => each.kills)} kills in ${sum((each) => each.runs)} runs; ${sum((each) => each.unknown)} steps reported unknown\n`,
  );
  expect(sum((each) => each.kills)).toBe(KILLS);
});
