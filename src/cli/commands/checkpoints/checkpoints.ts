import { turnText } from "../../../agents/conversation/position.ts";
import { LazarusError } from "../../../platform/errors.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointMetadata, CheckpointRef } from "../../../snapshot/model/entry.ts";
import { readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { defineCommand } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatBytes, formatDuration } from "../../render/format.ts";
import { type Column, renderTable } from "../../render/table.ts";

interface Row {
  readonly ref: CheckpointRef;
  /** Absent when manifest or config cannot be read. */
  readonly metadata: CheckpointMetadata | undefined;
}

export const command = defineCommand({
  about:
    "Lists the checkpoints of a mission, oldest first. SIZE is the size of the cell, STORED what this checkpoint added " +
    "to the vault.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: { last: { type: "number", short: "n", value: "N", summary: "list only the newest N" } },
  examples: [
    ["lazarus checkpoints tidy-inbox", "all checkpoints"],
    ["lazarus checkpoints tidy-inbox -n 5 --json", "the newest five, as JSON"],
  ],
  exits: ["missing", "damaged", "machine"],
  run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const refs = missionContext.vault.list();
    const rows = refs
      .slice(options.last === undefined ? 0 : -options.last || refs.length)
      .map(readRow(missionContext));
    context.emit(
      "checkpoints/1",
      { mission_id: missionContext.mission, checkpoints: rows.map(toDocument) },
      () =>
        rows.length === 0
          ? ""
          : renderTable(columns(context.machine.clock.nowMs()), rows, context.terminal.columns),
    );
    if (refs.length === 0)
      context.say(
        `${missionContext.mission} has no checkpoints; take one with: lazarus checkpoint ${missionContext.mission}`,
      );
    return 0;
  },
});

function readRow(missionContext: MissionContext): (ref: CheckpointRef) => Row {
  const known = new Map<string, CheckpointMetadata | undefined>();
  return (ref) => {
    if (!known.has(ref.manifest)) {
      try {
        known.set(ref.manifest, readCheckpoint(missionContext.vault, ref).metadata);
      } catch (error) {
        if (!(error instanceof LazarusError)) throw error;
        known.set(ref.manifest, undefined);
      }
    }
    return { ref, metadata: known.get(ref.manifest) };
  };
}

/** A checkpoint of an unchanged cell shares the previous manifest and stores nothing. */
function isRepeat({ ref, metadata }: Row): boolean {
  return metadata !== undefined && metadata.checkpoint_id !== ref.id;
}

function marks(row: Row): string {
  const { ref, metadata } = row;
  const all = [
    metadata === undefined && "damaged",
    ref.pinned && "pinned",
    ref.provenAtMs !== null && "proven",
    ref.beforeRestoreOf !== null && "undo",
    metadata !== undefined && metadata.flaws.length > 0 && "degraded",
  ];
  return all.filter((mark) => mark !== false).join(" ");
}

/** The user's message, and how far the conversation is. */
function describeRow({ ref, metadata }: Row): string {
  const turn = metadata?.conversation === undefined ? null : turnText(metadata.conversation);
  return [ref.message, turn].filter((text) => text !== null).join("; ");
}

function columns(nowMs: number): Column<Row>[] {
  return [
    { head: "CHECKPOINT", cell: ({ ref }) => ref.id },
    { head: "AGE", cell: ({ ref }) => formatDuration((nowMs - ref.createdAtMs) / 1000), alignRight: true },
    { head: "REASON", cell: ({ ref }) => ref.reason },
    {
      head: "SIZE",
      cell: ({ metadata }) => (metadata ? formatBytes(metadata.counts.bytes) : "?"),
      alignRight: true,
    },
    {
      head: "STORED",
      cell: (row) =>
        row.metadata ? (isRepeat(row) ? "-" : formatBytes(row.metadata.counts.stored_bytes)) : "?",
      alignRight: true,
    },
    { head: "MARKS", cell: marks },
    { head: "MESSAGE", cell: describeRow, shrinks: true },
  ];
}

function toDocument(row: Row): object {
  const { ref, metadata } = row;
  return {
    checkpoint_id: ref.id,
    created_ms: ref.createdAtMs,
    reason: ref.reason,
    message: ref.message,
    parent: ref.parent,
    pinned: ref.pinned,
    proven_ms: ref.provenAtMs,
    before_restore_of: ref.beforeRestoreOf,
    manifest: ref.manifest,
    unchanged: isRepeat(row),
    damaged: metadata === undefined,
    files: metadata?.counts.files ?? null,
    bytes: metadata?.counts.bytes ?? null,
    stored_bytes: isRepeat(row) ? 0 : (metadata?.counts.stored_bytes ?? null),
    conversation: metadata?.conversation ?? null,
    flaws: metadata?.flaws.length ?? null,
  };
}
