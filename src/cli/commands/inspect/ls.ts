import { LazarusError } from "../../../platform/errors.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointRef, Entry, Listing } from "../../../snapshot/model/entry.ts";
import { comparePaths, parentPath } from "../../../snapshot/model/path-bytes.ts";
import { requireKnown } from "../../../snapshot/operations/path-history.ts";
import { createScope } from "../../../snapshot/restore/scope.ts";
import { openContents } from "../../../snapshot/vault/contents.ts";
import { readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { defineCommand } from "../../command.ts";
import { typedPaths } from "../../here.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatTime } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import { findPoint, sayPoint, splitPoint } from "./point.ts";

export const command = defineCommand({
  about:
    "Lists the files of a checkpoint without restoring it. A checkpoint is an id or a part of it, latest, or a time such " +
    "as 10m, 14:30 or yesterday. A path that begins with a directory of the cell (worktree, state, …) is relative to the " +
    "cell; any other is relative to the current directory, if that is in the worktree, or else to the worktree.",
  positionals: [
    {
      name: "mission",
      summary: "id of the mission, or MISSION:CHECKPOINT (default: of this directory)",
      here: true,
    },
    { name: "checkpoint", summary: "which checkpoint (default latest)", optional: true },
    { name: "path", summary: "a directory or file (default: the whole cell)", optional: true },
  ],
  options: {
    long: { type: "flag", short: "l", summary: "with mode, size and time" },
    recursive: { type: "flag", short: "r", summary: "everything below, not only the next level" },
  },
  examples: [
    ["lazarus ls tidy-inbox", "the top of the latest checkpoint"],
    ["lazarus ls tidy-inbox 10m worktree/src -l", "a directory as it was ten minutes ago"],
  ],
  exits: ["missing", "damaged", "machine"],
  run(context, { args, options }) {
    const point = splitPoint(args.mission);
    using missionContext = openKnownMission(context, context.mission(point.mission));
    const { mission, vault, tree } = missionContext;
    const given = [args.checkpoint, args.path].filter((text) => text !== undefined);
    const { text, path } = assign(missionContext, point.checkpoint, given);
    const ref = findPoint(missionContext, text);
    using contents = openContents(vault, readCheckpoint(vault, ref).layers);
    const scope = createScope(typedPaths(context, missionContext, path === undefined ? [] : [path]), tree);
    requireKnown(missionContext, scope, {
      place: `checkpoint ${ref.id} of ${mission}`,
      listings: [contents.listing],
      retry: (id, path) => `lazarus ls ${mission}:${id} ${path}`,
    });
    const entries = select(contents.listing, scope.only?.[0] ?? ".", options.recursive);
    sayPoint(context, ref, text);
    context.emit(
      "ls/1",
      { mission_id: mission, checkpoint_id: ref.id, entries: entries.map(toDocument) },
      () => entries.map((entry) => (options.long ? longLine(entry) : shortLine(entry))).join(""),
    );
    return 0;
  },
});

/** One word after the mission is a checkpoint if it names one, otherwise a path. */
function assign(
  missionContext: MissionContext,
  chosen: string | undefined,
  [first, second]: readonly string[],
): { text: string | undefined; path: string | undefined } {
  if (chosen !== undefined) return { text: chosen, path: first };
  if (first === undefined || second !== undefined) return { text: first, path: second };
  return namesCheckpoint(missionContext, first)
    ? { text: first, path: undefined }
    : { text: undefined, path: first };
}

function namesCheckpoint(missionContext: MissionContext, text: string): CheckpointRef | undefined {
  try {
    return findPoint(missionContext, text);
  } catch (error) {
    if (error instanceof LazarusError && error.code === "CHECKPOINT_UNKNOWN") return undefined;
    throw error;
  }
}

function select(listing: Listing, top: string, recursive: boolean): Entry[] {
  const entry = listing.get(top);
  if (entry !== undefined && entry.type !== "directory") return [entry];
  const isBelow = (path: string) => top === "." || path.startsWith(`${top}/`);
  return [...listing.values()]
    .filter(({ path }) => path !== "." && (recursive ? isBelow(path) : parentPath(path) === top))
    .sort((a, b) => comparePaths(a.path, b.path));
}

const TYPES = { file: "-", directory: "d", symlink: "l", fifo: "p" } as const;

function shortLine({ path, type }: Entry): string {
  return `${escapeControls(path)}${type === "directory" ? "/" : ""}\n`;
}

function longLine(entry: Entry): string {
  const { type, mode, size, mtimeSec, target } = entry;
  const bits = [6, 3, 0].map((shift) => {
    const three = (mode >> shift) & 7;
    return `${three & 4 ? "r" : "-"}${three & 2 ? "w" : "-"}${three & 1 ? "x" : "-"}`;
  });
  const arrow = target === undefined ? "" : ` -> ${escapeControls(target)}`;
  const columns = [`${TYPES[type]}${bits.join("")}`, String(size).padStart(12), formatTime(mtimeSec * 1000)];
  return `${columns.join("  ")}  ${shortLine(entry).trimEnd()}${arrow}\n`;
}

export function toDocument(entry: Entry): object {
  const { path, type, mode, size, mtimeSec, mtimeNs, sha256, target } = entry;
  return {
    path,
    type,
    mode,
    size,
    modified_ms: mtimeSec * 1000 + Math.floor(mtimeNs / 1e6),
    sha256: sha256 === "" ? null : sha256,
    target: target ?? null,
  };
}
