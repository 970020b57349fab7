import { expect, it } from "vitest";
import { LazarusError } from "../platform/errors.ts";
import { describeError } from "./describe.ts";

it("describes an error with the next command", () => {
  const hint = { hint: "lazarus status" };
  expect(describeError(new LazarusError("NOT_FOUND", "nothing there", hint))).toBe(
    "nothing there; try: lazarus status",
  );
  expect(describeError(new Error("odd"))).toBe("odd");
});

it("tells the user to restart the pit when an upgrade removed code that it has not loaded yet", async () => {
  const missing = await import(new URL("./no-such-chunk.js", import.meta.url).href).catch(
    (error: unknown) => error,
  );
  expect(describeError(missing)).toMatch(
    /upgraded or removed .*; try: restart the pit's service .*; agents keep running/,
  );
});
