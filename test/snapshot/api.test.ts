// A mission managed through the library only: everything that a command does, `lazarus/snapshot` does as well.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { homeConfig, initCell, systemClock } from "../../src/index.ts";
import {
  compareListings,
  drill,
  exportToFile,
  findCheckpoint,
  forkMission,
  importCell,
  listCurrent,
  openContents,
  openMission,
  previewRestore,
  prune,
  readCheckpoint,
  rebuildRegistry,
  restoreCell,
  restoreTo,
  setPin,
  takeCheckpoint,
  undoRestore,
  verifyVault,
} from "../../src/snapshot/index.ts";

it("covers everything that the commands do", async () => {
  const home = fs.mkdtempSync(join(tmpdir(), "lazarus-api-"));
  try {
    const open = (id: string) => openMission(id, { home });
    const context = open("m");
    const { mission, vault } = context;
    initCell(context.config, mission);
    const file = join(context.cellRoot, "worktree/file");
    fs.writeFileSync(file, "then");

    const { ref: first } = await takeCheckpoint(context, { reason: "manual", message: "first" });
    fs.writeFileSync(file, "now, and longer");
    expect((await previewRestore(context, {})).changes.changed).toEqual(["worktree/file"]);
    const restored = await restoreCell(context, { checkpoint: first.id });
    expect(fs.readFileSync(file, "utf8")).toBe("then");
    await undoRestore(context);
    expect(fs.readFileSync(file, "utf8")).toBe("now, and longer");

    const nowMs = systemClock.nowMs();
    const found = findCheckpoint(vault.list(), { mission, text: restored.safety!.id, nowMs });
    using before = openContents(vault, readCheckpoint(vault, first).layers);
    using after = openContents(vault, readCheckpoint(vault, found).layers);
    const paths = (changes: readonly { path: string }[]) => changes.map(({ path }) => path);
    expect(paths(compareListings(before.listing, after.listing))).toEqual(["worktree/file"]);
    expect(paths(compareListings(after.listing, (await listCurrent(context)).listing))).toEqual([]);

    const copy = join(home, "restored");
    await restoreTo(context, { checkpoint: first.id, directory: copy });
    expect(fs.readFileSync(join(copy, "worktree/file"), "utf8")).toBe("then");
    expect((await drill(context, { checkpoint: first.id })).differences).toEqual([]);
    await setPin(context, first.id, true);
    await forkMission(context, open("fork"), { at: first.id });
    await exportToFile(context, first, join(home, "m.tar.gz"));
    await importCell(open("copy"), { source: join(home, "m.tar.gz"), owners: false });
    for (const id of ["fork", "copy"])
      expect(fs.readFileSync(join(open(id).cellRoot, "worktree/file"), "utf8")).toBe("then");

    const policy = { ...context.settings.retention, keep_last: 0, keep_within_seconds: 0, keep_hourly: 0 };
    const { kept } = await prune(context, { policy: { ...policy, keep_daily: 0, keep_weekly: 0 } });
    expect(kept.map(({ id }) => id)).toContain(first.id);
    expect((await verifyVault(vault, { deep: true })).findings).toEqual([]);
    const { missions } = await rebuildRegistry(homeConfig(home));
    expect(missions.map((each) => each.mission)).toEqual(["copy", "fork", "m"]);
  } finally {
    fs.rmSync(home, { recursive: true });
  }
});
