// Links and special files in the private directory: nothing is deleted or written through them, and nothing blocks on
// them. Untrusted processes can write to a workspace, and a prune may run with more privileges than they have.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { placeOf } from "../../src/flow/document/workspace.ts";
import { changeFlow, openFlow, pruneFlows, resumeFlow, runOnce, startFlow } from "../../src/flow/index.ts";
import { audit } from "../../src/flow/operations/audit.ts";
import { createScene, REPORT, type Scene } from "./scene.ts";

const OWN = "memory/checkpoints/.lazarus";
const prune = (scene: Scene) =>
  pruneFlows(scene.workspace, { me: scene.owner(), keepDays: 0, dryRun: false });

/** A finished flow, and a stranger's folder of the same name. */
async function sceneWithStranger(): Promise<Scene> {
  const scene = createScene();
  const me = scene.owner();
  await startFlow(scene.workspace, REPORT, { me });
  await changeFlow(scene.workspace, REPORT, { status: "done" }, me);
  await scene.machine.clock.advance(1000);
  scene.write("src/report/precious", "x");
  return scene;
}

describe("prune deletes nothing through a link", () => {
  it.for([
    ["once", `${OWN}/once`, "src"],
    [".lazarus", OWN, "src/own"],
  ])("at %s", async ([, at, to]) => {
    using scene = await sceneWithStranger();
    scene.write("src/own/once/report/precious", "x");
    mkdirSync(join(scene.root, OWN), { recursive: true });
    rmSync(join(scene.root, at!), { recursive: true, force: true });
    symlinkSync(join(scene.root, to!), join(scene.root, at!));
    await prune(scene).catch(() => undefined);
    await prune(scene).catch(() => undefined);
    expect(readFileSync(join(scene.root, "src/report/precious"), "utf8")).toBe("x");
    expect(readFileSync(join(scene.root, "src/own/once/report/precious"), "utf8")).toBe("x");
  });

  it("and keeps a flow whose key cannot be recorded", async () => {
    using scene = await sceneWithStranger();
    scene.write("elsewhere", "mine\n");
    mkdirSync(join(scene.root, OWN), { recursive: true });
    symlinkSync(join(scene.root, "elsewhere"), join(scene.root, OWN, "tombstones.jsonl"));
    await expect(prune(scene)).rejects.toMatchObject({
      code: "FLOW_OUTSIDE_ROOT",
      message: expect.stringContaining("is not a regular file"),
    });
    expect(readFileSync(join(scene.root, "elsewhere"), "utf8")).toBe("mine\n");
    expect(existsSync(scene.file("report"))).toBe(true);
  });
});

describe("obstacles in the private directory", () => {
  it("are not followed: an audit log behind a link is not written", async () => {
    using scene = createScene();
    await startFlow(scene.workspace, REPORT, { me: scene.owner() });
    scene.write("bashrc", "mine\n");
    mkdirSync(join(scene.root, OWN));
    symlinkSync(join(scene.root, "bashrc"), join(scene.root, OWN, "audit.jsonl"));
    expect(await audit(scene.workspace, "selfcheck", {})).toContain("is not a regular file");
    expect(readFileSync(join(scene.root, "bashrc"), "utf8")).toBe("mine\n");
  });

  it("are refused: once records behind a link are an error before the command runs", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    mkdirSync(join(scene.root, "src"));
    mkdirSync(join(scene.root, OWN));
    symlinkSync(join(scene.root, "src"), join(scene.root, OWN, "once"));
    const ran = join(scene.root, "ran");
    const once = runOnce(scene.workspace, {
      workflow: "report",
      key: "k",
      command: ["touch", ran],
      cwd: scene.root,
      env: {},
      me,
    });
    await expect(once).rejects.toMatchObject({ code: "FLOW_OUTSIDE_ROOT" });
    expect(existsSync(ran)).toBe(false);
    expect(readdirSync(join(scene.root, "src"))).toEqual([]);
  });

  it.for(["a directory", "a FIFO"])(
    "keeps a start from waiting or guessing: %s for the used keys",
    async (what) => {
      using scene = createScene();
      mkdirSync(join(scene.root, OWN), { recursive: true });
      const book = join(scene.root, OWN, "tombstones.jsonl");
      if (what === "a FIFO") expect(spawnSync("mkfifo", [book]).status).toBe(0);
      else mkdirSync(book);
      await expect(startFlow(scene.workspace, REPORT, { me: scene.owner() })).rejects.toMatchObject({
        message: expect.stringContaining("is not a regular file"),
        hint: expect.stringContaining("mv -n"),
      });
    },
  );
});

describe("a dangling link", () => {
  it("in place of a flow is a bad file, not an unknown workflow", async () => {
    using scene = createScene();
    await startFlow(scene.workspace, REPORT, { me: scene.owner() });
    for (const [name, target] of [
      ["dangling", "nowhere"],
      ["loop", "loop.json"],
    ] as const) {
      symlinkSync(target, scene.file(name));
      await expect(
        changeFlow(scene.workspace, { workflow: name }, { step: "x" }, scene.owner()),
      ).rejects.toMatchObject({ code: "FLOW_DAMAGED", message: expect.stringContaining("symbolic link") });
    }
  });

  it("in place of a lock is a lock without an owner, which can be stolen", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    const lock = scene.file("report").replace(".json", ".lock");
    symlinkSync("nowhere", lock);
    await expect(resumeFlow(scene.workspace, { workflow: "report", me })).rejects.toMatchObject({
      code: "FLOW_LOCKED",
      message: expect.stringContaining("without an owner"),
    });
    const { found } = await resumeFlow(scene.workspace, { workflow: "report", me, stealLock: true });
    expect(found?.document.workflowId).toBe("report");
    expect(readFileSync(lock, "utf8")).toContain(`"pid": ${me.pid}`);
    expect(openFlow(scene.root, placeOf(join(scene.root, "memory/checkpoints"), "report")).status).toBe(
      "in_progress",
    );
  });
});
