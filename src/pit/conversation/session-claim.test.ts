import { expect, it } from "vitest";
import { couldHideSession } from "./session-claim.ts";

const SESSION = "0197b2a4-5f63-7000-8000-000000000000";
const title = (length: number) => `pi${"\0".repeat(length)}`.split("\0").slice(0, -1);

it.each([
  ["a title with room for the session", title(80), true],
  ["a title without room for it", title(20), false],
  ["arguments that are still there", ["pi", "-p", "go on"], false],
  ["a program without arguments", ["pi"], false],
] as const)("%s", (_, words, expected) => {
  expect(couldHideSession(words, SESSION)).toBe(expected);
});
