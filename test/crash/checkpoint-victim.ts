// The victim of the kill loops around checkpoints: edits its cell and saves it, round after round, and says on stdout what
// is saved, after it is. Run with LAZARUS_CRASH_AT or killed from outside; never by hand, and never by production.
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
  const { ref } = await lab.checkpoint({ message: `round ${i}` });
  fs.writeSync(1, `saved ${ref.id}\n`);
}
fs.writeSync(1, "finished\n");
