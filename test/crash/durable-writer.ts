// Does durable writes in the given directory, round after round, and acknowledges each on stdout. durable-write.test.ts
// runs it with LAZARUS_CRASH_AT, which kills it.
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
const print = (text: string) => writeSync(1, `${text}\n`);

for (let round = 1; round <= ROUNDS; round++) {
  replaceFile(systemDisk, join(directory, "replaced"), contentOfRound(round));
  print(`saved replaced ${round}`);
  if (!createFile(systemDisk, join(directory, `created-${round}`), contentOfRound(round)))
    throw new Error("already exists");
  print(`saved created ${round}`);
  if (createFile(systemDisk, join(directory, `created-${round}`), "a second time"))
    throw new Error("created twice");
  if (round > 1) {
    removeFile(systemDisk, join(directory, `created-${round - 1}`));
    print(`saved removed ${round - 1}`);
  }
  makeDirectory(systemDisk, join(directory, `made-${round}`, "below"));
  print(`saved made ${round}`);
  appendLine(systemDisk, join(directory, "log"), `line ${round}`);
  print(`saved appended ${round}`);
}
print("finished");
