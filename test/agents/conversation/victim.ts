// Runs one operation on the mission in the given home, and prints "done" when it succeeds. The kill loop runs it with
// LAZARUS_CRASH_AT.
import { writeSync } from "node:fs";
import { takeCheckpoint } from "../../../src/snapshot/operations/checkpoint.ts";
import { restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { openMission } from "../../snapshot/restore-world.ts";
import { databaseAgent } from "./world.ts";

const [home = "", action = "", checkpoint] = process.argv.slice(2);
const mission = openMission(home, "m");
const context = {
  ...mission,
  findAdapter: (name: string) => (name === "databases" ? databaseAgent : mission.findAdapter(name)),
};

if (action === "checkpoint") await takeCheckpoint(context, { reason: "manual" });
else await restoreCell(context, { checkpoint });
writeSync(1, "done\n");
