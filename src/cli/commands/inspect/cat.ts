import { isUtf8 } from "node:buffer";
import { LazarusError } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import type { Entry } from "../../../snapshot/model/entry.ts";
import { placeStored } from "../../../snapshot/model/stored-bytes.ts";
import { requireKnown } from "../../../snapshot/operations/path-history.ts";
import { createScope } from "../../../snapshot/restore/scope.ts";
import { type Contents, openContents } from "../../../snapshot/vault/contents.ts";
import { readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { defineCommand } from "../../command.ts";
import { typedPaths } from "../../here.ts";
import { openKnownMission } from "../../open-mission.ts";
import { findPoint, sayPoint, splitPoint } from "./point.ts";

export const command = defineCommand({
  about:
    "Prints a file as it was in a checkpoint, byte for byte, without restoring anything. A checkpoint is an id or a part " +
    "of it, latest, or a time such as 10m, 14:30 or yesterday.",
  positionals: [
    {
      name: "mission",
      summary: "id of the mission, or MISSION:CHECKPOINT (default: the latest of this directory)",
      here: true,
    },
    { name: "path", summary: "a file, relative to the cell or the current directory" },
  ],
  options: {},
  examples: [
    ["lazarus cat tidy-inbox worktree/notes.md", "as in the latest checkpoint"],
    ["lazarus cat tidy-inbox:10m worktree/notes.md > notes.old", "as it was ten minutes ago"],
  ],
  exits: ["missing", "damaged", "machine"],
  run(context, { args }) {
    const point = splitPoint(args.mission);
    using missionContext = openKnownMission(context, context.mission(point.mission));
    const { mission, vault, tree } = missionContext;
    const ref = findPoint(missionContext, point.checkpoint);
    using contents = openContents(vault, readCheckpoint(vault, ref).layers);
    const scope = createScope(typedPaths(context, missionContext, [args.path]), tree);
    requireKnown(missionContext, scope, {
      place: `checkpoint ${ref.id} of ${mission}`,
      listings: [contents.listing],
      retry: (id, path) => `lazarus cat ${mission}:${id} ${path}`,
    });
    const path = scope.only?.[0] ?? ".";
    const entry = requireFile(contents, path, `${mission}:${ref.id}`);
    sayPoint(context, ref, point.checkpoint);
    if (!context.globals.json) {
      readFile(contents, entry, (bytes) => context.terminal.out(bytes));
      return 0;
    }
    const parts: Buffer[] = [];
    readFile(contents, entry, (bytes) => parts.push(Buffer.from(bytes)));
    const bytes = Buffer.concat(parts);
    const encoding = isUtf8(bytes) ? "utf8" : "base64";
    const document = { mission_id: mission, checkpoint_id: ref.id, path, size: entry.size, encoding };
    context.emit("cat/1", { ...document, content: bytes.toString(encoding) }, () => "");
    return 0;
  },
});

function requireFile({ listing }: Contents, path: string, point: string): Entry {
  const entry = path === "." ? undefined : listing.get(path);
  if (entry?.type === "file") return entry;
  const what = entry?.type === "symlink" ? `a symlink to ${JSON.stringify(entry.target)}` : "not a file";
  throw new LazarusError("NOT_FOUND", `${JSON.stringify(path)} is ${what} in ${point}`, {
    hint: `lazarus ls ${point} ${shellWord(path)}`,
    details: { path },
  });
}

const HOLE = Buffer.alloc(1 << 16);

/** Only the ranges with data are stored of a sparse file; the holes are zeros. */
function readFile(contents: Contents, entry: Entry, write: (bytes: Uint8Array) => void): void {
  let position = 0;
  const zerosUpTo = (end: number) => {
    for (; position < end; position += Math.min(HOLE.length, end - position))
      write(HOLE.subarray(0, Math.min(HOLE.length, end - position)));
  };
  contents.read(
    entry,
    placeStored(entry.extents, (part, offset) => {
      zerosUpTo(offset);
      write(part);
      position += part.length;
    }),
  );
  zerosUpTo(entry.size);
}
