import { describe, expect, test } from "vitest";
import { databaseError } from "../../platform/sqlite.ts";
import { RUNS_DATABASE } from "../journal/sqlite-migrations.ts";
import { decideOutcome } from "../model/outcome.ts";

const sqliteError = (errcode: number) => Object.assign(new Error("message from SQLite"), { errcode });

describe("SQLite errors", () => {
  test.each([
    [5, "RUN_STORE_UNREACHABLE"],
    [5 + 256, "RUN_STORE_UNREACHABLE"],
    [6, "RUN_STORE_UNREACHABLE"],
    [13, "DISK_FULL"],
    [11, "RUN_STORE_DAMAGED"],
    [8, "DISK_READ_ONLY"],
  ])("code %i becomes %s, with a hint", (errcode, code) => {
    const error = databaseError(sqliteError(errcode), "/x/runs.db", RUNS_DATABASE);
    expect(error).toMatchObject({ code, hint: expect.stringContaining("/x") });
    expect(error.message).toContain("/x/runs.db");
  });
  test("a locked database leaves the record for the next resume", () => {
    const error = databaseError(sqliteError(5), "/x/runs.db", RUNS_DATABASE);
    expect(decideOutcome({ kind: "threw", error }, "r")).toMatchObject({
      status: "failed",
      closing: undefined,
    });
  });
});
