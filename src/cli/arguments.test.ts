import { expect, it } from "vitest";
import { decodeArguments } from "./arguments.ts";

const line = (...words: (string | number[])[]) =>
  Buffer.concat(
    words.flatMap((word) => [typeof word === "string" ? Buffer.from(word) : Buffer.from(word), Buffer.of(0)]),
  );
const BAD = [0x62, 0xff, 0xfe];

it("decodes the last words of a command line exactly", () => {
  const words = ["cat", "m", "b\ufffd\ufffd", ""];
  expect(decodeArguments(line("node", "main.js", "cat", "m", BAD, ""), words)).toEqual([
    "cat",
    "m",
    "b\udcff\udcfe",
    "",
  ]);
  expect(decodeArguments(line("node", "cat", "é\ufffd"), ["cat", "é\ufffd"])).toEqual(["cat", "é\ufffd"]);
});

it("keeps what Node decoded where the command line is another one", () => {
  const words = ["cat", "b\ufffd\ufffd"];
  for (const other of [line("lazarus pit"), line("node", "cat", "x"), line(BAD), Buffer.alloc(0)]) {
    expect(decodeArguments(other, words)).toEqual(words);
  }
});
