// Live points of a cell with more directories than the kernel lets this process watch. Prints why it is not watched, and what its
// points lack.
import fs from "node:fs";
import { join } from "node:path";
import { readLiveStatus } from "../../src/pit/live/live-status.ts";
import { createLiveLab } from "./live-lab.ts";

// The watcher's worker does not keep the process running.
const running = setInterval(() => {}, 1000);
await using lab = await createLiveLab((worktree) => {
  for (let i = 0; i < 20; i += 1) fs.mkdirSync(join(worktree, `directory-${i}`));
});
const differences: string[][] = [];
for (const content of ["1", "22"]) {
  fs.writeFileSync(join(lab.worktree, "directory-19", "file"), content);
  await lab.point();
  differences.push(await lab.differences());
}
const { clock } = lab.context.machine;
const reason = () => {
  lab.live.due(clock.monotonicMs());
  return readLiveStatus(lab.context.config, "m1", process.pid)?.unwatched;
};
// The watcher's worker is started a few times before it is given up.
for (let i = 0; i < 600 && !reason(); i += 1) await clock.sleep(50);
const unwatched = reason();
clearInterval(running);
fs.writeSync(1, JSON.stringify({ unwatched, differences }));
