import { describe, expect, it } from "vitest";
import type { MissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import type { TreeWatcher } from "../watch/tree-watcher.ts";
import { beginSaving, endSaving, observe, startTracking } from "./tracked.ts";

const MISSION = "m" as MissionId;
const LIMITS = { withinMs: 30_000, quietMs: 2000, share: 0.05, auditMs: 3_600_000 };
const context = { config: { run_dir: "/nonexistent" }, log() {} } as unknown as PitContext;

function track() {
  const each = startTracking({ mission: MISSION, agent: null, limits: LIMITS }, 0);
  let changes = 0;
  const watcher = { read: () => ({ changes, unwatched: null }) } as unknown as TreeWatcher;
  return {
    each,
    change: () => {
      changes += 1;
    },
    observe: (ms: number) => observe(context, watcher, MISSION, each, ms),
    begin: () => beginSaving(each, changes),
  };
}

describe("a change", () => {
  it("that was counted before the set was taken, and read afterwards, is saved", () => {
    const { each, change, observe: read, begin } = track();
    change();
    begin();
    read(10);
    endSaving(each, true);
    read(20);
    expect([each.state.firstUnsavedMs, each.state.unsavedChanges]).toEqual([undefined, 0]);
  });

  it("that is made while the point is being taken is unsaved", () => {
    const { each, change, observe: read, begin } = track();
    begin();
    change();
    read(10);
    endSaving(each, true);
    expect([each.state.firstUnsavedMs, each.state.unsavedChanges]).toEqual([10, 1]);
  });

  it("is unsaved since when it was made, if the point fails", () => {
    const { each, change, observe: read, begin } = track();
    begin();
    endSaving(each, true);
    change();
    read(10);
    begin();
    change();
    read(20);
    endSaving(each, false);
    expect([each.state.firstUnsavedMs, each.state.unsavedChanges]).toEqual([10, 2]);
  });
});
