import { describe, expect, test } from "vitest";
import { databaseError } from "../../platform/sqlite.ts";
import { decideOutcome } from "../kernel/outcome.ts";
import { RUNS_DATABASE } from "./sqlite-schema.ts";

const said = (errcode: number) => Object.assign(new Error("as SQLite says it"), { errcode });

describe("what SQLite says", () => {
  test.each([
    [5, "RUN_STORE_UNREACHABLE"],
    [5 + 256, "RUN_STORE_UNREACHABLE"],
    [6, "RUN_STORE_UNREACHABLE"],
    [13, "DISK_FULL"],
    [11, "RUN_STORE_DAMAGED"],
    [8, "DISK_READ_ONLY"],
  ])("%i is %s, with a next step", (errcode, code) => {
    const error = databaseError(said(errcode), "/x/runs.db", RUNS_DATABASE);
    expect(error).toMatchObject({ code, hint: expect.stringContaining("/x") });
    expect(error.message).toContain("/x/runs.db");
  });
  test("a lock that was released leaves the record for the next resume", () => {
    const error = databaseError(said(5), "/x/runs.db", RUNS_DATABASE);
    expect(decideOutcome({ kind: "threw", error }, "r")).toMatchObject({
      status: "failed",
      closing: undefined,
    });
  });
});
