// Corrupt, truncated, foreign, huge and wrongly hashed files are quarantined and reported, never resumed, and do not affect
// valid ones. A file that cannot be judged (a newer schema, a directory) stays in place.
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  acceptEdit,
  changeFlow,
  checkFlows,
  listFlows,
  resumeFlow,
  startFlow,
} from "../../src/flow/index.ts";
import { type Disk, systemDisk } from "../../src/platform/disk.ts";
import { createRandom } from "../../src/testing/index.ts";
import { createScene, REPORT, type Scene } from "./scene.ts";

const openNew = (file: string): string => {
  writeFileSync(file, '{"a":"');
  return file;
};
const healthy = { ...REPORT, workflow: "zz-healthy", idempotency: "healthy" };

async function sceneWithHealthy(): Promise<Scene> {
  const scene = createScene();
  await startFlow(scene.workspace, healthy, { me: scene.owner() });
  return scene;
}

describe("a bad file", () => {
  const valid = async (scene: Scene, workflow: string) => {
    await startFlow(scene.workspace, { ...REPORT, workflow, idempotency: workflow }, { me: scene.owner() });
    return readFileSync(scene.file(workflow), "utf8");
  };
  const kinds: [string, (scene: Scene, file: string) => Promise<unknown> | unknown][] = [
    ["empty", (_scene, file) => writeFileSync(file, "")],
    ["not JSON", (_scene, file) => writeFileSync(file, "\u0000\u0001 junk")],
    ["of another kind", (_scene, file) => writeFileSync(file, '{"name":"package","version":"1.0.0"}')],
    ["a list", (_scene, file) => writeFileSync(file, "[1,2,3]")],
    ["truncated", async (scene, file) => writeFileSync(file, (await valid(scene, "bad")).slice(0, 100))],
    [
      "wrongly hashed",
      async (scene, file) => writeFileSync(file, (await valid(scene, "bad")).replace("fetch", "catch")),
    ],
    ["a copy", async (scene, file) => cpSync(scene.file("zz-healthy"), file)],
    ["huge", (_scene, file) => truncateSync(openNew(file), 3_000_000_000)],
    [
      "nested deeply",
      (_scene, file) => writeFileSync(file, `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`),
    ],
    ["not UTF-8", (_scene, file) => writeFileSync(file, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
    ["a link", (scene, file) => symlinkSync(scene.file("zz-healthy"), file)],
  ];

  it.for(kinds)("that is %s is quarantined with a report and does not hide others", async ([, spoil]) => {
    using scene = await sceneWithHealthy();
    const file = scene.file("bad");
    await spoil(scene, file);
    expect(listFlows(scene.root)).toMatchObject({ bad: [{ workflowId: "bad", quarantined: false }] });
    expect(checkFlows(scene.root, scene.machine.clock.nowMs(), 10)).toMatchObject({
      status: "alert",
      invalid: [{}],
    });
    await expect(
      changeFlow(scene.workspace, { workflow: "bad" }, { step: "x" }, scene.owner()),
    ).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
    });
    const { found, bad } = await resumeFlow(scene.workspace, { me: scene.owner() });
    expect(found?.document.workflowId).toBe("zz-healthy");
    expect(bad).toMatchObject([{ workflowId: "bad", quarantined: true }]);
    const report = JSON.parse(readFileSync(bad[0]!.report!, "utf8"));
    expect(report).toMatchObject({
      workflowId: "bad",
      from: file,
      file: bad[0]!.file,
      reason: bad[0]!.reason,
    });
    const { flows, bad: still } = listFlows(scene.root);
    expect(flows.map(({ place }) => place.stem)).toEqual(["zz-healthy"]);
    expect(still).toMatchObject([{ workflowId: "bad", quarantined: true, reason: bad[0]!.reason }]);
  });

  it("that another tool repairs while it is moved is put back without a report", async () => {
    using scene = await sceneWithHealthy();
    const good = await valid(scene, "aa");
    scene.write("memory/checkpoints/aa.json", "half writ");
    const disk: Disk = {
      ...systemDisk,
      rename(from, to) {
        if (String(from) === scene.file("aa")) writeFileSync(scene.file("aa"), good);
        systemDisk.rename(from, to);
      },
    };
    const workspace = { root: scene.root, machine: { ...scene.machine, disk } };
    expect((await resumeFlow(workspace, { me: scene.owner() })).bad).toEqual([]);
    expect(readFileSync(scene.file("aa"), "utf8")).toBe(good);
    expect(listFlows(scene.root)).toMatchObject({ flows: [{}, {}], bad: [] });
  });

  it("is an error when requested by name, not NO_CHECKPOINT", async () => {
    using scene = await sceneWithHealthy();
    scene.write("memory/checkpoints/bad.json", "junk");
    const resume = () => resumeFlow(scene.workspace, { workflow: "bad", me: scene.owner() });
    await expect(resume()).rejects.toMatchObject({ code: "FLOW_DAMAGED" });
  });

  it("blocks a start of that name; --force quarantines it and never overwrites it", async () => {
    using scene = await sceneWithHealthy();
    scene.write("memory/checkpoints/report.json", "all that is left");
    const start = (force: boolean) => startFlow(scene.workspace, REPORT, { me: scene.owner(), force });
    await expect(start(false)).rejects.toMatchObject({ code: "FLOW_DAMAGED" });
    await start(true);
    const [bad] = listFlows(scene.root).bad;
    expect(readFileSync(bad!.file, "utf8")).toBe("all that is left");
    expect(scene.read("report").status).toBe("in_progress");
  });

  it("in quarantine blocks a start, too: it may be unfinished work", async () => {
    using scene = await sceneWithHealthy();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    await changeFlow(scene.workspace, REPORT, { complete: ["fetch"] }, me);
    const edited = readFileSync(scene.file("report"), "utf8").replace('"notes": ""', '"notes": "x"');
    writeFileSync(scene.file("report"), edited);
    expect((await resumeFlow(scene.workspace, { me })).bad).toMatchObject([{ workflowId: "report" }]);
    await expect(startFlow(scene.workspace, REPORT, { me })).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
      message: expect.stringContaining("report is in quarantine"),
      hint: expect.stringMatching(/lazarus flow accept-edit --workflow report; or start over with --force$/),
    });
    await acceptEdit(scene.workspace, { workflow: "report" });
    expect(scene.read("report").completedSteps).toEqual(["fetch"]);
  });

  it("with a newer schema stays in place", async () => {
    using scene = await sceneWithHealthy();
    const newer = readFileSync(scene.file("zz-healthy"), "utf8")
      .replace('"1.0"', '"2.0"')
      .replace("zz-healthy", "newer");
    const file = scene.write("memory/checkpoints/newer.json", newer);
    const { found, bad } = await resumeFlow(scene.workspace, { me: scene.owner() });
    expect(found?.document.workflowId).toBe("zz-healthy");
    expect(bad).toMatchObject([{ file, why: "newer", quarantined: false }]);
    expect(readFileSync(file, "utf8")).toBe(newer);
  });

  it("that is a directory stays in place, like everything else next to the flows", async () => {
    using scene = await sceneWithHealthy();
    mkdirSync(scene.file("folder"));
    scene.write("memory/checkpoints/CHECKPOINT_SCHEMA.json", "{}");
    scene.write("memory/checkpoints/README.md", "hello");
    const { found, bad } = await resumeFlow(scene.workspace, { me: scene.owner() });
    expect(found).toBeDefined();
    expect(bad).toMatchObject([{ workflowId: "folder", quarantined: false }]);
    expect(readdirSync(join(scene.root, "memory/checkpoints"))).toEqual(
      expect.arrayContaining(["CHECKPOINT_SCHEMA.json", "README.md", "folder.json"]),
    );
  });

  it("is never resumed, whichever bytes change", async () => {
    using scene = await sceneWithHealthy();
    const good = readFileSync(scene.file("zz-healthy"));
    const before = JSON.parse(good.toString());
    const random = createRandom(4);
    for (let round = 0; round < 300; round += 1) {
      const bytes = Buffer.from(good);
      // Up to the hash's own name: without one there is nothing to compare, which the format allows.
      bytes[random.int(0, bytes.indexOf('"checkpointHash"') - 1)] = random.int(0, 255);
      writeFileSync(scene.file("zz-healthy"), bytes);
      const [flow] = listFlows(scene.root).flows;
      // Only a change in white space or in the spelling of an escape can leave the content as it was.
      if (flow !== undefined) expect(JSON.parse(JSON.stringify(flow.document))).toEqual(before);
    }
  });
});

describe("accept-edit", () => {
  it("restores a file with a wrong hash and updates the hash", async () => {
    using scene = await sceneWithHealthy();
    const edited = readFileSync(scene.file("zz-healthy"), "utf8").replace(
      '"notes": ""',
      '"notes": "by hand"',
    );
    writeFileSync(scene.file("zz-healthy"), edited);
    await resumeFlow(scene.workspace, { me: scene.owner() });
    const { document } = await acceptEdit(scene.workspace, { workflow: "zz-healthy" });
    expect(document.notes).toBe("by hand");
    expect(listFlows(scene.root)).toMatchObject({ flows: [{ document: { notes: "by hand" } }], bad: [] });
    await expect(acceptEdit(scene.workspace, { workflow: "zz-healthy" })).rejects.toMatchObject({
      code: "FLOW_UNKNOWN",
    });
  });

  it("never overwrites a file", async () => {
    using scene = await sceneWithHealthy();
    const text = readFileSync(scene.file("zz-healthy"), "utf8");
    writeFileSync(scene.file("zz-healthy"), text.replace('"notes": ""', '"notes": "by hand"'));
    await resumeFlow(scene.workspace, { me: scene.owner() });
    writeFileSync(scene.file("zz-healthy"), text);
    await expect(acceptEdit(scene.workspace, { workflow: "zz-healthy" })).rejects.toMatchObject({
      code: "FLOW_EXISTS",
    });
    expect(listFlows(scene.root).flows).toHaveLength(1);
  });

  it("refuses files with any other damage", async () => {
    using scene = await sceneWithHealthy();
    scene.write("memory/checkpoints/bad.json", "junk");
    await resumeFlow(scene.workspace, { me: scene.owner() });
    await expect(acceptEdit(scene.workspace, { workflow: "bad" })).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
    });
  });
});

it("no file content makes listing or checking throw", () => {
  using scene = createScene();
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string({ unit: "binary" })), (text) => {
      scene.write("memory/checkpoints/any.json", text);
      expect(() => listFlows(scene.root)).not.toThrow();
    }),
    { numRuns: 200 },
  );
});
