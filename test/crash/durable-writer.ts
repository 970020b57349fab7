// The victim of the kill loop: does durable writes in the directory it is given, round after round, and says on stdout
// what is saved, after it is. Run with LAZARUS_CRASH_AT; never by hand, and never by production.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  appendLine,
  createFile,
  makeDirectory,
  removeFile,
  replaceFile,
} from "../../src/platform/durable.ts";
import { contentOfRound, ROUNDS } from "./durable-rounds.ts";

const directory = process.argv[2] ?? "";

/** Synchronous, so that a line is in the pipe before the next write begins. */
const say = (text: string) => writeSync(1, `${text}\n`);

for (let round = 1; round <= ROUNDS; round++) {
  replaceFile(systemDisk, join(directory, "replaced"), contentOfRound(round));
  say(`saved replaced ${round}`);
  if (!createFile(systemDisk, join(directory, `created-${round}`), contentOfRound(round)))
    throw new Error("taken");
  say(`saved created ${round}`);
  if (createFile(systemDisk, join(directory, `created-${round}`), "a second time"))
    throw new Error("created twice");
  if (round > 1) {
    removeFile(systemDisk, join(directory, `created-${round - 1}`));
    say(`saved removed ${round - 1}`);
  }
  makeDirectory(systemDisk, join(directory, `made-${round}`, "below"));
  say(`saved made ${round}`);
  appendLine(systemDisk, join(directory, "log"), `line ${round}`);
  say(`saved appended ${round}`);
}
say("finished");
