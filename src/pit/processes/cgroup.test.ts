import { expect, test } from "vitest";
import { findMount } from "./cgroup.ts";

test("the mount of the whole version 2 tree is found, among version 1 and partial ones", () => {
  const lines = [
    "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    "31 24 0:27 /docker/1 /part rw shared:9 - cgroup2 cgroup2 rw",
    "32 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw",
  ];
  expect(findMount(lines.join("\n"))).toBe("/sys/fs/cgroup/unified");
  expect(findMount(lines.slice(0, 2).join("\n"))).toBeUndefined();
});
