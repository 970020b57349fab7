// An app on the AI SDK becomes durable with three lines: both versions run, with equal results.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqliteRunStore } from "../../src/run/index.ts";

const EXAMPLE = join(import.meta.dirname, "..", "..", "examples", "adoption");

function run(name: string, outbox: string) {
  const args = ["--disable-warning=ExperimentalWarning", join(EXAMPLE, `${name}.ts`), outbox];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return { ...JSON.parse(stdout), mails: readFileSync(outbox, "utf8") };
}

test("the durable version differs in three lines", () => {
  const linesOf = (name: string) =>
    readFileSync(join(EXAMPLE, name), "utf8")
      .split("\n")
      .filter((line) => !line.startsWith("//"));
  const plain = linesOf("plain.ts");
  const added = linesOf("durable.ts").filter((line) => !plain.includes(line));
  expect(added).toHaveLength(3);
  expect(plain.filter((line) => !linesOf("durable.ts").includes(line))).toHaveLength(1);
});

test("both versions give the same result and do the same", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-adoption-"));
  try {
    const plain = run("plain", join(directory, "plain.txt"));
    expect(plain.calls).toHaveLength(2);
    expect(run("durable", join(directory, "durable.txt"))).toEqual(plain);
    await using store = openSqliteRunStore(join(directory, "durable.txt.runs.db"));
    expect(await store.list()).toMatchObject([{ agentId: "mailer", status: "completed", step: 3 }]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
