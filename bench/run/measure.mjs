// Measures a contender in its own process: `count` runs at the same time, after one to warm up. Prints the time, the processor
// time, the highest resident memory and the longest stall of the event loop as JSON.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";

const RESOLUTION_MS = 5;

/** `run` executes one run and returns its text. */
export async function measure(count, run) {
  await check(run);
  // The delays of a timer: a stall of the loop shows as one that fired late.
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  // Its first timer only begins the measurement, and each later one records what delayed it, also what lasted until the end.
  await setTimeout(2 * RESOLUTION_MS);
  const before = process.cpuUsage();
  const started = performance.now();
  await Promise.all(Array.from({ length: count }, () => check(run)));
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(before);
  await setTimeout(2 * RESOLUTION_MS);
  // In kilobytes: what the kernel has seen, so nothing between two samples is missed.
  const peak = process.resourceUsage().maxRSS * 1024;
  process.stdout.write(
    JSON.stringify({ ms, peak, stallMs: delay.max / 1e6 - RESOLUTION_MS, cpuMs: (user + system) / 1000 }),
  );
}

async function check(run) {
  const text = await run();
  if (text !== "done") throw new Error(`a run ended with ${JSON.stringify(text)}`);
}
