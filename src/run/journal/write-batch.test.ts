import { expect, test } from "vitest";
import { createWriteBatches } from "./write-batch.ts";

/** Batches of at most `maxWrites` letters, one at a time; capitals have low priority. */
function collect(maxWrites: number, minLow: number) {
  const sent: string[] = [];
  const write = createWriteBatches<string, string>({
    ...{ parallel: 1, maxWrites, minLow },
    keyOf: (letter) => letter,
    isLow: (letter) => letter === letter.toUpperCase(),
    send: async (letters) => {
      sent.push(letters.join(""));
      return letters;
    },
    sendOne: async (letter) => {
      sent.push(letter);
      return letter;
    },
  });
  return { sent, write: (letters: string) => Promise.all([...letters].map(write)) };
}

test("low-priority writes fill what the others leave free", async () => {
  const { sent, write } = collect(4, 1);
  expect(await write("ABCabD")).toEqual([..."ABCabD"]);
  expect(sent).toEqual(["abAB", "CD"]);
});

test("a full batch has a few low-priority writes, so that they never wait forever", async () => {
  const { sent, write } = collect(4, 1);
  await write("ABabcdefg");
  expect(sent).toEqual(["abcA", "defB", "g"]);
});

test("a batch has one write per key", async () => {
  const { sent, write } = collect(4, 1);
  await write("aabA");
  expect(sent).toEqual(["abA", "a"]);
});
