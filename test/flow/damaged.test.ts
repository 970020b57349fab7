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
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const openNew = (file: string): string => {
  writeFileSync(file, '{"a":"');
  return file;
};
const healthy = { ...REPORT, workflow: "zz-healthy", idempotency: "healthy" };

async function fixtureWithHealthy(): Promise<Fixture> {
  const fixture = createFixture();
  await startFlow(fixture.workspace, healthy, { me: fixture.owner() });
  return fixture;
}

describe("a bad file", () => {
  const valid = async (fixture: Fixture, workflow: string) => {
    await startFlow(
      fixture.workspace,
      { ...REPORT, workflow, idempotency: workflow },
      { me: fixture.owner() },
    );
    return readFileSync(fixture.file(workflow), "utf8");
  };
  const kinds: [string, (fixture: Fixture, file: string) => Promise<unknown> | unknown][] = [
    ["empty", (_fixture, file) => writeFileSync(file, "")],
    ["not JSON", (_fixture, file) => writeFileSync(file, "\u0000\u0001 junk")],
    ["of another kind", (_fixture, file) => writeFileSync(file, '{"name":"package","version":"1.0.0"}')],
    ["a list", (_fixture, file) => writeFileSync(file, "[1,2,3]")],
    ["truncated", async (fixture, file) => writeFileSync(file, (await valid(fixture, "bad")).slice(0, 100))],
    [
      "wrongly hashed",
      async (fixture, file) => writeFileSync(file, (await valid(fixture, "bad")).replace("fetch", "catch")),
    ],
    ["a copy", async (fixture, file) => cpSync(fixture.file("zz-healthy"), file)],
    ["huge", (_fixture, file) => truncateSync(openNew(file), 3_000_000_000)],
    [
      "nested deeply",
      (_fixture, file) => writeFileSync(file, `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`),
    ],
    ["not UTF-8", (_fixture, file) => writeFileSync(file, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
    ["a link", (fixture, file) => symlinkSync(fixture.file("zz-healthy"), file)],
  ];

  it.for(kinds)("that is %s is quarantined with a report and does not hide others", async ([, damage]) => {
    using fixture = await fixtureWithHealthy();
    const file = fixture.file("bad");
    await damage(fixture, file);
    expect(listFlows(fixture.root)).toMatchObject({ bad: [{ workflowId: "bad", quarantined: false }] });
    expect(checkFlows(fixture.root, fixture.machine.clock.nowMs(), 10)).toMatchObject({
      status: "alert",
      invalid: [{}],
    });
    await expect(
      changeFlow(fixture.workspace, { workflow: "bad" }, { step: "x" }, fixture.owner()),
    ).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
    });
    const { found, bad } = await resumeFlow(fixture.workspace, { me: fixture.owner() });
    expect(found?.document.workflowId).toBe("zz-healthy");
    expect(bad).toMatchObject([{ workflowId: "bad", quarantined: true }]);
    const report = JSON.parse(readFileSync(bad[0]!.report!, "utf8"));
    expect(report).toMatchObject({
      workflowId: "bad",
      from: file,
      file: bad[0]!.file,
      reason: bad[0]!.reason,
    });
    const { flows, bad: listed } = listFlows(fixture.root);
    expect(flows.map(({ place }) => place.stem)).toEqual(["zz-healthy"]);
    expect(listed).toMatchObject([{ workflowId: "bad", quarantined: true, reason: bad[0]!.reason }]);
  });

  it("that another tool repairs while it is moved is put back without a report", async () => {
    using fixture = await fixtureWithHealthy();
    const good = await valid(fixture, "aa");
    fixture.write("memory/checkpoints/aa.json", "half writ");
    const disk: Disk = {
      ...systemDisk,
      rename(from, to) {
        if (String(from) === fixture.file("aa")) writeFileSync(fixture.file("aa"), good);
        systemDisk.rename(from, to);
      },
    };
    const workspace = { root: fixture.root, machine: { ...fixture.machine, disk } };
    expect((await resumeFlow(workspace, { me: fixture.owner() })).bad).toEqual([]);
    expect(readFileSync(fixture.file("aa"), "utf8")).toBe(good);
    expect(listFlows(fixture.root)).toMatchObject({ flows: [{}, {}], bad: [] });
  });

  it("is an error when requested by name, not NO_CHECKPOINT", async () => {
    using fixture = await fixtureWithHealthy();
    fixture.write("memory/checkpoints/bad.json", "junk");
    const resume = () => resumeFlow(fixture.workspace, { workflow: "bad", me: fixture.owner() });
    await expect(resume()).rejects.toMatchObject({ code: "FLOW_DAMAGED" });
  });

  it("blocks a start of that name; --force quarantines it and never overwrites it", async () => {
    using fixture = await fixtureWithHealthy();
    fixture.write("memory/checkpoints/report.json", "all that is left");
    const start = (force: boolean) => startFlow(fixture.workspace, REPORT, { me: fixture.owner(), force });
    await expect(start(false)).rejects.toMatchObject({ code: "FLOW_DAMAGED" });
    await start(true);
    const [bad] = listFlows(fixture.root).bad;
    expect(readFileSync(bad!.file, "utf8")).toBe("all that is left");
    expect(fixture.read("report").status).toBe("in_progress");
  });

  it("in quarantine also blocks a start: it may be unfinished work", async () => {
    using fixture = await fixtureWithHealthy();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, me);
    const edited = readFileSync(fixture.file("report"), "utf8").replace('"notes": ""', '"notes": "x"');
    writeFileSync(fixture.file("report"), edited);
    expect((await resumeFlow(fixture.workspace, { me })).bad).toMatchObject([{ workflowId: "report" }]);
    await expect(startFlow(fixture.workspace, REPORT, { me })).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
      message: expect.stringContaining("report is in quarantine"),
      hint: expect.stringMatching(/lazarus flow accept-edit --workflow report; or start over with --force$/),
    });
    await acceptEdit(fixture.workspace, { workflow: "report" });
    expect(fixture.read("report").completedSteps).toEqual(["fetch"]);
  });

  it("with a newer schema stays in place", async () => {
    using fixture = await fixtureWithHealthy();
    const newer = readFileSync(fixture.file("zz-healthy"), "utf8")
      .replace('"1.0"', '"2.0"')
      .replace("zz-healthy", "newer");
    const file = fixture.write("memory/checkpoints/newer.json", newer);
    const { found, bad } = await resumeFlow(fixture.workspace, { me: fixture.owner() });
    expect(found?.document.workflowId).toBe("zz-healthy");
    expect(bad).toMatchObject([{ file, why: "newer", quarantined: false }]);
    expect(readFileSync(file, "utf8")).toBe(newer);
  });

  it("that is a directory stays in place, like everything else next to the flows", async () => {
    using fixture = await fixtureWithHealthy();
    mkdirSync(fixture.file("folder"));
    fixture.write("memory/checkpoints/CHECKPOINT_SCHEMA.json", "{}");
    fixture.write("memory/checkpoints/README.md", "hello");
    const { found, bad } = await resumeFlow(fixture.workspace, { me: fixture.owner() });
    expect(found).toBeDefined();
    expect(bad).toMatchObject([{ workflowId: "folder", quarantined: false }]);
    expect(readdirSync(join(fixture.root, "memory/checkpoints"))).toEqual(
      expect.arrayContaining(["CHECKPOINT_SCHEMA.json", "README.md", "folder.json"]),
    );
  });

  it("is never resumed, no matter which bytes change", async () => {
    using fixture = await fixtureWithHealthy();
    const good = readFileSync(fixture.file("zz-healthy"));
    const before = JSON.parse(good.toString());
    const random = createRandom(4);
    for (let round = 0; round < 300; round += 1) {
      const bytes = Buffer.from(good);
      // Only before the key checkpointHash: a file without a hash is valid.
      bytes[random.int(0, bytes.indexOf('"checkpointHash"') - 1)] = random.int(0, 255);
      writeFileSync(fixture.file("zz-healthy"), bytes);
      const [flow] = listFlows(fixture.root).flows;
      // Only a change in white space or in the spelling of an escape can leave the content as it was.
      if (flow !== undefined) expect(JSON.parse(JSON.stringify(flow.document))).toEqual(before);
    }
  });
});

describe("accept-edit", () => {
  it("restores a file with a wrong hash and updates the hash", async () => {
    using fixture = await fixtureWithHealthy();
    const edited = readFileSync(fixture.file("zz-healthy"), "utf8").replace(
      '"notes": ""',
      '"notes": "by hand"',
    );
    writeFileSync(fixture.file("zz-healthy"), edited);
    await resumeFlow(fixture.workspace, { me: fixture.owner() });
    const { document } = await acceptEdit(fixture.workspace, { workflow: "zz-healthy" });
    expect(document.notes).toBe("by hand");
    expect(listFlows(fixture.root)).toMatchObject({ flows: [{ document: { notes: "by hand" } }], bad: [] });
    await expect(acceptEdit(fixture.workspace, { workflow: "zz-healthy" })).rejects.toMatchObject({
      code: "FLOW_UNKNOWN",
    });
  });

  it("never overwrites a file", async () => {
    using fixture = await fixtureWithHealthy();
    const text = readFileSync(fixture.file("zz-healthy"), "utf8");
    writeFileSync(fixture.file("zz-healthy"), text.replace('"notes": ""', '"notes": "by hand"'));
    await resumeFlow(fixture.workspace, { me: fixture.owner() });
    writeFileSync(fixture.file("zz-healthy"), text);
    await expect(acceptEdit(fixture.workspace, { workflow: "zz-healthy" })).rejects.toMatchObject({
      code: "FLOW_EXISTS",
    });
    expect(listFlows(fixture.root).flows).toHaveLength(1);
  });

  it("refuses files with any other damage", async () => {
    using fixture = await fixtureWithHealthy();
    fixture.write("memory/checkpoints/bad.json", "junk");
    await resumeFlow(fixture.workspace, { me: fixture.owner() });
    await expect(acceptEdit(fixture.workspace, { workflow: "bad" })).rejects.toMatchObject({
      code: "FLOW_DAMAGED",
    });
  });
});

it("no file content makes listing or checking throw", () => {
  using fixture = createFixture();
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string({ unit: "binary" })), (text) => {
      fixture.write("memory/checkpoints/any.json", text);
      expect(() => listFlows(fixture.root)).not.toThrow();
    }),
    { numRuns: 200 },
  );
});
