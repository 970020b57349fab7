// Takes a checkpoint with a limited number of file descriptors. Prints the outcome.
import fs from "node:fs";
import { LazarusError } from "../../src/platform/errors.ts";
import { createLab } from "./lab.ts";

const [home = "", left = "0"] = process.argv.slice(2);
const lab = createLab({ home });
// The first checkpoint loads everything that is loaded lazily.
await lab.checkpoint();
fs.writeFileSync(`${lab.worktree}/new`, "x");
const taken: number[] = [];
try {
  for (;;) taken.push(fs.openSync("/dev/null", "r"));
} catch {}
for (const fd of taken.splice(0, Number(left))) fs.closeSync(fd);
let ending = "saved";
try {
  const { flaws } = await lab.checkpoint();
  if (flaws.length > 0) ending = `flawed ${JSON.stringify(flaws)}`;
} catch (error) {
  ending = error instanceof LazarusError ? `${error.code} ${error.message}` : `raw ${error}`;
}
for (const fd of taken) fs.closeSync(fd);
fs.writeSync(1, ending);
