import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createGroupCommit } from "./sqlite.ts";

let directory: string;
let database: DatabaseSync;
let commits: number;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-group-"));
  database = new DatabaseSync(join(directory, "x.db"));
  database.exec("CREATE TABLE t (n INTEGER PRIMARY KEY)");
  commits = 0;
  const prepare = database.prepare.bind(database);
  database.prepare = (sql) => {
    const statement = prepare(sql);
    if (sql !== "COMMIT") return statement;
    const run = statement.run.bind(statement) as () => ReturnType<typeof statement.run>;
    statement.run = () => {
      commits += 1;
      return run();
    };
    return statement;
  };
});
afterEach(() => {
  if (database.isOpen) database.close();
  rmSync(directory, { recursive: true, force: true });
});

const insert = (n: number) => () => database.prepare("INSERT INTO t VALUES (?)").run(n).changes;
const stored = () =>
  database
    .prepare("SELECT n FROM t ORDER BY n")
    .all()
    .map(({ n }) => n);

describe("group commit", () => {
  test("writes of one turn share one commit, and each gets its own result", async () => {
    const { run } = createGroupCommit(database);
    const answers = await Promise.all([1, 2, 3].map((n) => run(() => Number(insert(n)()) * n * 10)));
    expect(answers).toEqual([10, 20, 30]);
    expect(commits).toBe(1);
    await run(insert(4));
    expect(commits).toBe(2);
    expect(stored()).toEqual([1, 2, 3, 4]);
  });
  test("a write that throws is rolled back alone", async () => {
    const { run } = createGroupCommit(database);
    const results = await Promise.allSettled([
      run(insert(1)),
      run(() => {
        insert(2)();
        throw new Error("only this write");
      }),
      run(insert(1)),
      run(insert(3)),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(stored()).toEqual([1, 3]);
  });
  test("a single write that throws leaves no transaction open", async () => {
    const { run } = createGroupCommit(database);
    await expect(run(() => insert(1)() && database.exec("nonsense"))).rejects.toThrow(/syntax/);
    expect(database.isTransaction).toBe(false);
    await run(insert(1));
    expect(stored()).toEqual([1]);
  });
  test("a database that is closed before the commit rejects all writes", async () => {
    const { run } = createGroupCommit(database);
    const both = [run(insert(1)), run(insert(2))];
    database.close();
    for (const each of await Promise.allSettled(both)) expect(each.status).toBe("rejected");
  });
});
