import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findMount, sweepCgroups } from "./cgroup.ts";

test("the mount of the whole version 2 tree is found, among version 1 and partial ones", () => {
  const lines = [
    "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    "31 24 0:27 /docker/1 /part rw shared:9 - cgroup2 cgroup2 rw",
    "32 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw",
  ];
  expect(findMount(lines.join("\n"))).toBe("/sys/fs/cgroup/unified");
  expect(findMount(lines.slice(0, 2).join("\n"))).toBeUndefined();
});

test("old empty groups are removed, young ones and those with members are not", () => {
  // Plain directories: every user can create them.
  const base = mkdtempSync(join(tmpdir(), "lazarus-groups-"));
  const [empty, nested, used] = ["a", "b", "c"].map((digit) => `lazarus-${digit.repeat(32)}`) as [
    string,
    string,
    string,
  ];
  for (const name of [empty, join(nested, "inner"), used, "lazarus-mine", "other"])
    mkdirSync(join(base, name), { recursive: true });
  writeFileSync(join(base, used, "cgroup.procs"), "1\n");
  const HOUR = 3_600_000;
  sweepCgroups(Date.now(), base);
  expect(readdirSync(base)).toHaveLength(5);
  sweepCgroups(Date.now() + HOUR, base);
  expect(readdirSync(base).sort()).toEqual([used, "lazarus-mine", "other"].sort());
  rmSync(base, { recursive: true });
});
