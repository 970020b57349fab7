// Runs one snapshot operation in a child process that is killed at a crash point. Prints "done" when it succeeds.
// Run by the kill loops with LAZARUS_CRASH_AT.
import { writeSync } from "node:fs";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openMissionContext } from "../../src/snapshot/mission-context.ts";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { setPin } from "../../src/snapshot/operations/pin.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { repairIndex } from "../../src/snapshot/vault/repair-index.ts";

const [operation = "", home = "", argument = ""] = process.argv.slice(2);
const effective = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
const context = openMissionContext(systemMachine, effective, parseMissionId("m"), {
  version: "0",
  environment: process.env,
});

if (operation === "prune") await prune(context, { policy: JSON.parse(argument) });
else if (operation === "import") await importCell(context, { source: argument, owners: false });
else if (operation === "export") await exportToFile(context, context.vault.list().at(-1)!, argument);
else if (operation === "repair") await repairIndex(systemMachine, context.vault);
else if (operation === "pin") await setPin(context, "latest", true);
else throw new Error(`unknown operation ${operation}`);
writeSync(1, "done\n");
