// Which paths of a cell differ from a checkpoint now. Writes nothing into vault or cell.
import type { MissionContext } from "../mission-context.ts";
import { compareListings } from "../model/diff.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { openContents } from "../vault/contents.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { listCurrent } from "./current-listing.ts";

/** Paths below `prefix` whose content or kind changed, sorted. */
export async function changesSince(
  context: MissionContext,
  checkpoint: string,
  prefix: string,
): Promise<string[]> {
  const { vault, mission, machine } = context;
  const ref = findCheckpoint(vault.list(), { mission, text: checkpoint, nowMs: machine.clock.nowMs() });
  const { listing } = await listCurrent(context);
  using contents = openContents(vault, readCheckpoint(vault, ref).layers);
  return compareListings(contents.listing, listing)
    .filter(({ path, kind }) => kind !== "metadata" && path.startsWith(prefix))
    .map(({ path }) => path);
}
