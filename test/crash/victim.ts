// Runs one operation of the snapshot room in a process of its own, to be killed at a crash point. Says "done" when it is.
// Run by the kill loops with LAZARUS_CRASH_AT; never by hand, and never by production.
import { writeSync } from "node:fs";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openRoom } from "../../src/snapshot/mission-context.ts";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { setPin } from "../../src/snapshot/operations/pin.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { mendIndex } from "../../src/snapshot/vault/repair-index.ts";

const [operation = "", home = "", argument = ""] = process.argv.slice(2);
const effective = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
const room = openRoom(systemMachine, effective, parseMissionId("m"), {
  version: "0",
  environment: process.env,
});

if (operation === "prune") await prune(room, { policy: JSON.parse(argument) });
else if (operation === "import") await importCell(room, { source: argument, owners: false });
else if (operation === "export") await exportToFile(room, room.vault.list().at(-1)!, argument);
else if (operation === "mend") await mendIndex(systemMachine, room.vault);
else if (operation === "pin") await setPin(room, "latest", true);
else throw new Error(`no operation ${operation}`);
writeSync(1, "done\n");
