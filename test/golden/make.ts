// Creates the golden vaults of the current format version. Run once when a version is fixed, never to make a test pass:
//   node test/golden/make.ts test/golden/v1
// A later version that changes the format adds a directory and leaves the old ones alone.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { setPin } from "../../src/snapshot/operations/pin.ts";
import { openMissionContext } from "../../src/snapshot/mission-context.ts";
import { CHANGES, listTree, makeRealCell } from "../snapshot/real-cell.ts";

/** Fixtures must not depend on the machine that created them. */
const machine = { ...systemMachine, processes: { ...systemMachine.processes, hostName: () => "golden" } };
const target = process.argv[2];
if (target === undefined) throw new Error("usage: node test/golden/make.ts DIRECTORY");
const home = mkdtempSync(join(tmpdir(), "lazarus-golden-"));
try {
  for (const compression of ["gzip", "zstd"] as const) {
    const effective = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
    const document = { snapshot: { compression }, retention: { auto: false } };
    const context = openMissionContext(machine, { ...effective, document }, parseMissionId(compression), { version: "0.1.0" });
    const worktree = makeRealCell(context);
    // A few kilobytes, not megabytes: the large file has its own tests.
    rmSync(join(worktree, "large"));
    mkdirSync(join(target, compression), { recursive: true });
    const save = async (message: string) => {
      const { ref, flaws } = await takeCheckpoint(context, { reason: "manual", message });
      if (flaws.length > 0) throw new Error(`flaws: ${JSON.stringify(flaws)}`);
      const rows = listTree(context.cellRoot).map((row) => JSON.stringify(row));
      writeFileSync(join(target, compression, `${ref.id}.jsonl`), `${rows.join("\n")}\n`);
    };
    await save("the whole cell");
    for (const [i, change] of CHANGES.entries()) {
      change(worktree);
      await save(`change ${i + 1}`);
    }
    await takeCheckpoint(context, { reason: "scheduled", message: "nothing changed" });
    await setPin(context, context.vault.list()[1]!.id, true);
    for (const name of ["oci-layout", "index.json", "blobs"])
      cpSync(join(context.vault.root, name), join(target, compression, "vault", name), { recursive: true });
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
