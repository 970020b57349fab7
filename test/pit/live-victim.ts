// Takes live points of the lab in a directory, from what the watch reports, until it is killed. The parent sets LAZARUS_CRASH_AT.
import fs from "node:fs";
import { join } from "node:path";
import { createLiveLab } from "./live-lab.ts";

const [directory = "", rounds = "0"] = process.argv.slice(2);
// The watcher's worker does not keep the process running.
const running = setInterval(() => {}, 1000);
const lab = await createLiveLab(() => {}, directory);
for (let i = 0; i < Number(rounds); i += 1) {
  fs.mkdirSync(join(lab.worktree, `new-${i}/sub`), { recursive: true });
  fs.writeFileSync(join(lab.worktree, `new-${i}/sub/file`), `${i}`);
  fs.appendFileSync(join(lab.worktree, "log"), `round ${i}\n`);
  fs.rmSync(join(lab.worktree, `new-${i - 2}`), { recursive: true, force: true });
  await lab.point();
  fs.writeSync(1, `${lab.lastSet.unknown === null ? "set" : "walk"}\n`);
}
clearInterval(running);
