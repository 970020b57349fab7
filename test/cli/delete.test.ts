// lazarus delete: what it removes, what it keeps, and what it refuses.
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

/** Paths in the home that name the mission. */
const traces = (mission: string) =>
  readdirSync(world.home, { recursive: true, encoding: "utf8" }).filter((path) =>
    path
      .split("/")
      .some((name) => name === mission || name.startsWith(`${mission}.`) || name.endsWith(`-${mission}`)),
  );

it("deletes everything but the event log; the name can be used again", async () => {
  await world.call(["run", "book", "--no-env", "--", "sh", "-c", "echo 1 > chapter"]);
  expect(traces("book").length).toBeGreaterThan(3);
  const { exit, stdout } = await world.call(["delete", "book", "--yes"]);
  expect(exit).toBe(0);
  expect(stdout).toContain(`deleted ${join(world.missions, "book")}\n`);
  expect(stdout).toContain("deleted 2 checkpoints\n");
  expect(traces("book")).toEqual([]);
  expect((await world.call(["status"])).stdout).toContain("no missions yet");
  expect((await world.call(["events"])).stdout).toMatch(/delete +book .*checkpoints=2/);
  expect((await world.call(["delete", "book", "--yes"])).exit).toBe(6);
  expect((await world.call(["init", "book"])).exit).toBe(0);
  expect(JSON.parse((await world.call(["checkpoints", "book", "--json"])).stdout).checkpoints).toEqual([]);
});

it("prints what it would delete, and deletes nothing without --yes", async () => {
  await world.call(["init", "book"]);
  await world.call(["checkpoint", "book"]);
  const before = traces("book");
  const refused = await world.call(["delete", "book"]);
  expect(refused).toMatchObject({ exit: 2, stdout: "" });
  expect(refused.stderr).toContain(`would delete ${join(world.missions, "book")}\n`);
  expect(refused.stderr).toContain(
    "would delete 1 checkpoint\nerror: book was not deleted\n  try: lazarus delete book --yes",
  );
  const preview = await world.call(["delete", "book", "--dry-run", "--yes"]);
  expect(preview).toMatchObject({ exit: 0, stderr: "" });
  expect(preview.stdout).toContain("would delete 1 checkpoint\n");
  expect(traces("book")).toEqual(before);
});

it("does not touch a directory in place, which can be protected again", async () => {
  world.write("app/file", "x");
  const app = world.path("app");
  await world.call(["protect", app]);
  const { exit, stdout } = await world.call(["delete", "app", "--yes"]);
  expect({ exit, kept: stdout.includes(`kept the directory ${app}\n`) }).toEqual({ exit: 0, kept: true });
  expect(readFileSync(join(app, "file"), "utf8")).toBe("x");
  expect(traces("app")).toEqual([]);
  expect((await world.call(["protect", app])).exit).toBe(0);
});

it("removes only the link of a cell that is one", async () => {
  await world.call(["init", "real"]);
  symlinkSync("real", join(world.missions, "linked"));
  expect((await world.call(["delete", "linked", "--yes"])).exit).toBe(0);
  expect(existsSync(join(world.missions, "linked"))).toBe(false);
  expect(existsSync(join(world.missions, "real", "meta", "mission.json"))).toBe(true);
});

it("refuses while a process writes in the cell, and while the vault is not mounted", async () => {
  await world.call(["init", "book"]);
  await world.call(["checkpoint", "book"]);
  const vault = join(world.home, "vault", "book");
  renameSync(vault, `${vault}-away`);
  const lost = await world.call(["delete", "book", "--yes"]);
  expect({ exit: lost.exit, says: lost.stderr.includes("the registry lists 1 checkpoint") }).toEqual({
    exit: 8,
    says: true,
  });
  renameSync(`${vault}-away`, vault);
  if (process.platform === "linux") {
    const file = openSync(join(world.missions, "book", "worktree", "draft"), "w");
    const { exit, stderr } = await world.call(["delete", "book", "--yes"]);
    closeSync(file);
    expect(exit).toBe(10);
    expect(stderr).toContain("worktree/draft open for writing; nothing of book was deleted");
  }
  expect((await world.call(["delete", "book", "--yes"])).exit).toBe(0);
});

it("refuses while the agent runs, refuses a call by the agent, and refuses an unknown mission", async () => {
  await world.call(["run", "book", "--detach", "--no-env", "--", "sleep", "1000"]);
  const running = await world.call(["delete", "book", "--yes"]);
  expect(running.exit).toBe(10);
  expect(running.stderr).toContain("lazarus stop book, then run the same command again");
  await world.call(["stop", "book", "--grace", "0"]);
  const asked = world.run(["delete", "book", "--yes"], {
    env: { LAZARUS_MISSION: "book", LAZARUS_EPOCH: "1" },
  });
  expect(asked.exit).toBe(7);
  expect((await world.call(["delete", "nook", "--yes"])).stderr).toContain("did you mean book?");
  expect((await world.call(["delete", "book", "--yes"])).exit).toBe(0);
});
