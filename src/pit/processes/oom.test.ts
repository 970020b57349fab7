import { describe, expect, test } from "vitest";
import { countOomKills, pickOomLine } from "./oom.ts";

const LOG = `[1] Out of memory: Killed process 11 (old) total-vm:1kB
[2] usb 1-1: new device number 4711
[3] oom-kill:constraint=CONSTRAINT_MEMCG,task=claude,pid=4711,uid=1000
[4] Memory cgroup out of memory: Killed process 4711 (claude) total-vm:8123456kB
[5] Memory cgroup out of memory: Killed process 47110 (other) total-vm:1kB`;

describe("the kernel's log", () => {
  test("yields the newest line about an OOM kill of the process", () => {
    expect(pickOomLine(LOG, 4711)).toMatch(/^\[4\] Memory cgroup/);
  });
  test("yields nothing for other processes or other uses of the number", () => {
    expect(pickOomLine(LOG, 471)).toBeUndefined();
    expect(pickOomLine("[2] usb 1-1: new device number 4711", 4711)).toBeUndefined();
    expect(pickOomLine("", 1)).toBeUndefined();
  });
});

test("the counter is a number or null", () => {
  const count = countOomKills();
  expect(count === null || (Number.isSafeInteger(count) && count >= 0)).toBe(true);
});
