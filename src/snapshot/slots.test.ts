import { expect, test } from "vitest";
import { createSimulatedClock } from "../testing/simulated-clock.ts";
import { createSlots } from "./slots.ts";

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("grants a few slots, then one for each that is released, in order", async () => {
  const slots = createSlots(createSimulatedClock(), 2, 1000);
  const entered: string[] = [];
  const enter = async (name: string) => {
    const slot = await slots.acquire();
    entered.push(name);
    return slot;
  };
  const [first, , third, fourth] = ["a", "b", "c", "d"].map(enter);
  await tick();
  expect(entered).toEqual(["a", "b"]);
  const slot = await first!;
  slot[Symbol.dispose]();
  slot[Symbol.dispose]();
  await third;
  expect(entered).toEqual(["a", "b", "c"]);
  (await third!)[Symbol.dispose]();
  await fourth;
  expect(entered).toEqual(["a", "b", "c", "d"]);
});

test("a slot that is held for too long goes to the next in line", async () => {
  const clock = createSimulatedClock();
  const slots = createSlots(clock, 1, 1000);
  const slow = await slots.acquire();
  const next = slots.acquire();
  await clock.advance(1001);
  using _ = await next;
  // Not given back twice.
  slow[Symbol.dispose]();
  let third = false;
  void slots.acquire().then(() => {
    third = true;
  });
  await tick();
  expect(third).toBe(false);
});
