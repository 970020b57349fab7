// Loaded into the measured process with `node --import`: records its peak memory and the time spent in fsync at exit.
// Its own cost is negligible.
import fs from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  let syncMs = 0;
  for (const name of ["fsyncSync", "fdatasyncSync"]) {
    const plain = fs[name];
    fs[name] = (fd) => {
      const start = performance.now();
      plain(fd);
      syncMs += performance.now() - start;
    };
  }
  process.on("exit", () => {
    const peakKb = process.resourceUsage().maxRSS;
    fs.writeFileSync(process.env.LAZARUS_BENCH_PROBE, JSON.stringify({ peakKb, syncMs }));
  });
}
