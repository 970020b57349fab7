// Runs one operation on the mission in the given home, and prints "done" when it succeeds. The kill loops of restore run
// it with LAZARUS_CRASH_AT.
import { writeSync } from "node:fs";
import { deleteMission } from "../../src/snapshot/operations/delete-mission.ts";
import { drill } from "../../src/snapshot/operations/drill.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { protectDirectory } from "../../src/snapshot/operations/protect.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { openMission } from "../snapshot/restore-world.ts";

const [home = "", action = "", checkpoint] = process.argv.slice(2);
const context = openMission(home, "m");

if (action === "restore") await restoreCell(context, { checkpoint });
else if (action === "undo") await undoRestore(context);
else if (action === "to") await restoreTo(context, { checkpoint, directory: `${home}/to` });
else if (action === "fork") await forkMission(context, openMission(home, "forked"), { at: checkpoint });
else if (action === "drill") await drill(context, { checkpoint });
else if (action === "delete") await deleteMission(context);
else if (action === "protect") await protectDirectory(context, checkpoint!, undefined);
else throw new Error(`unknown action ${action}`);
writeSync(1, "done\n");
