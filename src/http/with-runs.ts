// Opens the runs of a cell for one request. An encrypted store is read with the key in LAZARUS_RUN_KEY of the pit.
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { cellPaths } from "../cell/layout.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { PitContext } from "../pit/context.ts";
import { LazarusError } from "../platform/errors.ts";
import type { RunLog } from "../run/log/run-log.ts";
import { CELL_RUNS, openCellRunStore } from "../run/store/open.ts";

export async function withRuns<T>(
  { machine, config, environment }: Pick<PitContext, "machine" | "config" | "environment">,
  mission: MissionId,
  work: (log: RunLog) => Promise<T>,
): Promise<T> {
  const { root } = cellPaths(config, mission);
  if (!existsSync(join(root, CELL_RUNS))) {
    throw new LazarusError("RUN_UNKNOWN", `mission ${mission} has no runs`, { hint: "lazarus runs" });
  }
  refuseLinked(root, mission);
  const key = environment.LAZARUS_RUN_KEY;
  const encryptionKey =
    key === undefined || key === "" ? {} : { encryptionKey: new Uint8Array(Buffer.from(key, "base64")) };
  await using store = openCellRunStore(root, { machine, ...encryptionKey });
  return await work(store.log);
}

/** A token may be for one mission only, and its agent can replace the store by a link to that of another one. */
function refuseLinked(root: string, mission: MissionId): void {
  const path = join(root, CELL_RUNS);
  const found = realpathSync(path);
  if (found === join(realpathSync(root), CELL_RUNS)) return;
  throw new LazarusError(
    "RUN_STORE_FOREIGN",
    `the runs of mission ${mission} are not in its cell: ${path} leads to ${found}`,
    {
      hint: `ls -l ${path}`,
    },
  );
}
