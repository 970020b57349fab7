// Edits its cell and takes a checkpoint or live point, round after round, and prints the id of each: of the whole cell in the
// first round, then in turns of what it has changed. The checkpoint kill loops run it with LAZARUS_CRASH_AT, or kill it from outside.
import fs from "node:fs";
import { join } from "node:path";
import { createLab } from "../snapshot/lab.ts";
import { CRASH_DOCUMENT } from "./checkpoint-settings.ts";

const [home = "", rounds = "0", first = "0"] = process.argv.slice(2);
const lab = createLab({ home, document: CRASH_DOCUMENT });
fs.writeSync(1, "ready\n");
for (let i = Number(first); i < Number(first) + Number(rounds); i += 1) {
  fs.writeFileSync(join(lab.worktree, `file${i % 7}`), `round ${i} ${"x".repeat((i * 97) % 3000)}`);
  fs.writeFileSync(join(lab.worktree, ".env"), `KEY=${i}`);
  if (i % 3 === 2) fs.rmSync(join(lab.worktree, `file${(i + 3) % 7}`), { force: true });
  if (i % 5 === 4) fs.writeFileSync(join(lab.cell, "large"), Buffer.alloc(5 << 20, i));
  const names = ["", `/file${i % 7}`, `/file${(i + 3) % 7}`, "/.env"].map((name) => `worktree${name}`);
  // Long enough to be continued by live points, and stored as a whole by the checkpoint after them.
  const log = join(lab.cell, "log");
  fs.appendFileSync(log, `round ${i}\n`.repeat(fs.existsSync(log) ? 9 : 9999));
  const dirty = { paths: new Set([".", "large", "log", ...names]), trees: new Set<string>() };
  const isFirst = i === Number(first);
  const { ref } = await lab.checkpoint({
    ...(i % 4 === 0 ? { message: `round ${i}` } : { reason: "live", git: "deferred" }),
    ...(isFirst || i % 3 === 0 ? {} : { dirty }),
  });
  fs.writeSync(1, `saved ${ref.id}\n`);
}
fs.writeSync(1, "finished\n");
