// Hints name the store that was chosen.
import { expect, test } from "vitest";
import { LazarusError } from "../../../platform/errors.ts";
import { withSameStore } from "./same-store.ts";

const hintOf = (hint: string, store: string | undefined, mission?: string) =>
  (withSameStore(new LazarusError("USAGE", "no", { hint }), { store, mission }) as LazarusError).hint;

test.each([
  ["lazarus runs show r1", "lazarus runs show r1 --store 'my runs.db'"],
  ["lazarus runs", "lazarus runs --store 'my runs.db'"],
  [
    "lazarus runs approve r1 --request w [--deny]",
    "lazarus runs approve r1 --store 'my runs.db' --request w [--deny]",
  ],
  ["lazarus runs, to list the runs", "lazarus runs --store 'my runs.db', to list the runs"],
  ["lazarus runs show r1 --store x", "lazarus runs show r1 --store x"],
  ["ls -l runs.db", "ls -l runs.db"],
])("%s", (hint, expected) => {
  expect(hintOf(hint, "my runs.db")).toBe(expected);
});

test("a password is not repeated, and without a choice nothing is added", () => {
  expect(hintOf("lazarus runs show r1", "postgres://me:secret@db/x")).toBe("lazarus runs show r1 --store …");
  expect(hintOf("lazarus runs show r1", undefined, "m1")).toBe("lazarus runs show r1 --mission m1");
  const error = new LazarusError("USAGE", "no", { hint: "lazarus runs" });
  expect(withSameStore(error, { store: undefined, mission: undefined })).toBe(error);
});
