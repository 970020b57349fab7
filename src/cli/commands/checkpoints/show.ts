import { describePosition } from "../../../agents/conversation/position.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import { findCheckpoint } from "../../../snapshot/model/find-checkpoint.ts";
import { isLocalOnly } from "../../../snapshot/vault/codec.ts";
import { type Checkpoint, readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { CHECKPOINT_ARGUMENT, defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { formatBytes, formatCount, formatTime } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import { describeIndexed } from "./checkpoints.ts";

export const command = defineCommand({
  about:
    "Prints the details of a checkpoint: when and why it was taken, its layers, the git commit, the positions of flows " +
    "and runs, and everything that was not captured exactly.",
  positionals: [MISSION_ARGUMENT, CHECKPOINT_ARGUMENT],
  options: {},
  examples: [
    ["lazarus show tidy-inbox", "the latest"],
    ["lazarus show tidy-inbox '2 hours ago' --json", "as JSON"],
  ],
  exits: ["missing", "damaged", "unsupported", "machine"],
  run(context, { args }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const { mission, vault } = missionContext;
    const nowMs = context.machine.clock.nowMs();
    const ref = findCheckpoint(vault.list(), { mission, text: args.checkpoint, nowMs });
    const checkpoint = readCheckpoint(vault, ref);
    context.emit("show/1", toDocument(checkpoint), () => describe(missionContext, checkpoint));
    return 0;
  },
});

function toDocument({ ref, metadata, layers, documents }: Checkpoint): object {
  return {
    mission_id: metadata.mission,
    ...describeIndexed(ref),
    /** The checkpoint with the same content, if the cell had not changed. */
    same_content_as: metadata.checkpoint_id === ref.id ? null : metadata.checkpoint_id,
    manifest: ref.manifest,
    /** A live point that is stored as a record has none. */
    config: ref.isRecord ? null : documents[1],
    layers: layers.map(({ digest, size, mediaType, diffId }) => ({
      digest,
      size,
      media_type: mediaType,
      diff_id: diffId,
      local_only: isLocalOnly(mediaType),
    })),
    agent: metadata.agent,
    host: metadata.host,
    lazarus_version: metadata.lazarus_version,
    git: metadata.git,
    counts: metadata.counts,
    flows: metadata.flows,
    runs: metadata.runs,
    conversation: metadata.conversation ?? null,
    flaws: metadata.flaws,
    excluded: metadata.excluded,
  };
}

function describe(missionContext: MissionContext, { ref, metadata, layers }: Checkpoint): string {
  const { counts, git } = metadata;
  const lines: [string, string | null][] = [
    ["checkpoint", ref.id],
    ["mission", metadata.mission],
    ["taken", `${formatTime(ref.createdAtMs)} on ${metadata.host}, ${ref.reason}`],
    ["message", ref.message],
    ["agent", metadata.agent],
    ["parent", ref.parent],
    ["content", metadata.checkpoint_id === ref.id ? null : `unchanged since ${metadata.checkpoint_id}`],
    ["undoes", ref.beforeRestoreOf === null ? null : `the restore of ${ref.beforeRestoreOf}`],
    [
      "marks",
      [ref.pinned ? "pinned" : "", ref.provenAtMs === null ? "" : `proven ${formatTime(ref.provenAtMs)}`]
        .filter(Boolean)
        .join(", ") || null,
    ],
    [
      "contains",
      `${formatCount(counts.files, "file")}, ${formatCount(counts.directories, "directory", "directories")}, ${formatCount(counts.others, "other")}, ${formatBytes(counts.bytes)}`,
    ],
    [
      "stored",
      `${formatCount(counts.changed, "path")}, ${counts.removed} removed, ${formatBytes(counts.stored_bytes)}`,
    ],
    [
      "git",
      git.commit === null
        ? git.note
        : `${git.commit.slice(0, 12)} on ${git.branch ?? "no branch"} (${git.ref})`,
    ],
    ["flows", summarize(metadata.flows)],
    ["runs", summarize(metadata.runs)],
    ["conversation", describeConversation(missionContext, metadata.conversation)],
    ["excluded", metadata.excluded.length === 0 ? null : metadata.excluded.join("  ")],
    [ref.isRecord ? "record" : "manifest", ref.manifest],
  ];
  const table = lines
    .filter((line): line is [string, string] => line[1] !== null)
    .map(([name, value]) => `${name.padEnd(12)}  ${escapeControls(value)}\n`)
    .join("");
  const layerLines = layers.map(
    ({ digest, size, mediaType }, i) =>
      `${(i === 0 ? "layers" : "").padEnd(12)}  ${digest.slice(7, 19)}  ${formatBytes(size)}${isLocalOnly(mediaType) ? "  local only" : ""}\n`,
  );
  const flaws = describeFlaws(metadata.flaws).map((line) => `${line}\n`);
  return table + layerLines.join("") + flaws.join("");
}

function describeConversation(
  { findAdapter }: MissionContext,
  position: Checkpoint["metadata"]["conversation"],
): string | null {
  if (position === undefined) return null;
  const only = findAdapter(position.adapter)?.positionOnly
    ? "; only the position, without the transcript"
    : "";
  return `${describePosition(position)}${only}`;
}

/** The first three plain fields of each position: id, status, step. */
function summarize(positions: readonly unknown[]): string | null {
  if (positions.length === 0) return null;
  const SHOWN = 5;
  const texts = positions.slice(0, SHOWN).map((position) => {
    const fields = typeof position === "object" && position !== null ? Object.entries(position) : [];
    const plain = fields.filter(([, value]) => typeof value === "string" || typeof value === "number");
    return plain
      .map(([, value]) => String(value))
      .slice(0, 3)
      .join(" ");
  });
  if (positions.length > SHOWN) texts.push(`and ${positions.length - SHOWN} more`);
  return texts.join("; ");
}
