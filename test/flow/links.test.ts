// Links and special files in the private directory: nothing is deleted or written through them, and nothing blocks on
// them. Untrusted processes can write to a workspace, and a prune may run with more privileges than they have.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { placeOf } from "../../src/flow/document/workspace.ts";
import { changeFlow, openFlow, pruneFlows, resumeFlow, runOnce, startFlow } from "../../src/flow/index.ts";
import { audit } from "../../src/flow/operations/audit.ts";
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const OWN = "memory/checkpoints/.lazarus";
const prune = (fixture: Fixture) =>
  pruneFlows(fixture.workspace, { me: fixture.owner(), keepDays: 0, dryRun: false });

/** A finished flow, and an unrelated directory of the same name. */
async function finishedFlow(): Promise<Fixture> {
  const fixture = createFixture();
  const me = fixture.owner();
  await startFlow(fixture.workspace, REPORT, { me });
  await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
  await fixture.machine.clock.advance(1000);
  fixture.write("src/report/precious", "x");
  return fixture;
}

describe("prune deletes nothing through a link", () => {
  it.for([
    ["once", `${OWN}/once`, "src"],
    [".lazarus", OWN, "src/own"],
  ])("at %s", async ([, at, to]) => {
    using fixture = await finishedFlow();
    fixture.write("src/own/once/report/precious", "x");
    mkdirSync(join(fixture.root, OWN), { recursive: true });
    rmSync(join(fixture.root, at!), { recursive: true, force: true });
    symlinkSync(join(fixture.root, to!), join(fixture.root, at!));
    await prune(fixture).catch(() => undefined);
    await prune(fixture).catch(() => undefined);
    expect(readFileSync(join(fixture.root, "src/report/precious"), "utf8")).toBe("x");
    expect(readFileSync(join(fixture.root, "src/own/once/report/precious"), "utf8")).toBe("x");
  });

  it("and keeps a flow whose key cannot be recorded", async () => {
    using fixture = await finishedFlow();
    fixture.write("elsewhere", "mine\n");
    mkdirSync(join(fixture.root, OWN), { recursive: true });
    symlinkSync(join(fixture.root, "elsewhere"), join(fixture.root, OWN, "tombstones.jsonl"));
    await expect(prune(fixture)).rejects.toMatchObject({
      code: "FLOW_OUTSIDE_ROOT",
      message: expect.stringContaining("is not a regular file"),
    });
    expect(readFileSync(join(fixture.root, "elsewhere"), "utf8")).toBe("mine\n");
    expect(existsSync(fixture.file("report"))).toBe(true);
  });
});

describe("obstacles in the private directory", () => {
  it("are not followed: an audit log behind a link is not written", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    fixture.write("bashrc", "mine\n");
    mkdirSync(join(fixture.root, OWN));
    symlinkSync(join(fixture.root, "bashrc"), join(fixture.root, OWN, "audit.jsonl"));
    expect(await audit(fixture.workspace, "selfcheck", {})).toContain("is not a regular file");
    expect(readFileSync(join(fixture.root, "bashrc"), "utf8")).toBe("mine\n");
  });

  it("are refused: once records behind a link are an error before the command runs", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    mkdirSync(join(fixture.root, "src"));
    mkdirSync(join(fixture.root, OWN));
    symlinkSync(join(fixture.root, "src"), join(fixture.root, OWN, "once"));
    const ran = join(fixture.root, "ran");
    const once = runOnce(fixture.workspace, {
      workflow: "report",
      key: "k",
      command: ["touch", ran],
      cwd: fixture.root,
      env: {},
      me,
    });
    await expect(once).rejects.toMatchObject({ code: "FLOW_OUTSIDE_ROOT" });
    expect(existsSync(ran)).toBe(false);
    expect(readdirSync(join(fixture.root, "src"))).toEqual([]);
  });

  it.for(["a directory", "a FIFO"])(
    "make a start fail without blocking: %s in place of the used keys",
    async (what) => {
      using fixture = createFixture();
      mkdirSync(join(fixture.root, OWN), { recursive: true });
      const file = join(fixture.root, OWN, "tombstones.jsonl");
      if (what === "a FIFO") expect(spawnSync("mkfifo", [file]).status).toBe(0);
      else mkdirSync(file);
      await expect(startFlow(fixture.workspace, REPORT, { me: fixture.owner() })).rejects.toMatchObject({
        message: expect.stringContaining("is not a regular file"),
        hint: expect.stringContaining("mv -n"),
      });
    },
  );
});

describe("a dangling link", () => {
  it("in place of a flow is a bad file, not an unknown workflow", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    for (const [name, target] of [
      ["dangling", "nowhere"],
      ["loop", "loop.json"],
    ] as const) {
      symlinkSync(target, fixture.file(name));
      await expect(
        changeFlow(fixture.workspace, { workflow: name }, { step: "x" }, fixture.owner()),
      ).rejects.toMatchObject({ code: "FLOW_DAMAGED", message: expect.stringContaining("symbolic link") });
    }
  });

  it("in place of a lock is a lock without an owner, which can be stolen", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const lock = fixture.file("report").replace(".json", ".lock");
    symlinkSync("nowhere", lock);
    await expect(resumeFlow(fixture.workspace, { workflow: "report", me })).rejects.toMatchObject({
      code: "FLOW_LOCKED",
      message: expect.stringContaining("without an owner"),
    });
    const { found } = await resumeFlow(fixture.workspace, { workflow: "report", me, stealLock: true });
    expect(found?.document.workflowId).toBe("report");
    expect(readFileSync(lock, "utf8")).toContain(`"pid": ${me.pid}`);
    expect(openFlow(fixture.root, placeOf(join(fixture.root, "memory/checkpoints"), "report")).status).toBe(
      "in_progress",
    );
  });
});
