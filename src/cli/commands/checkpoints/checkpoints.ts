import { turnText } from "../../../agents/conversation/position.ts";
import { LazarusError } from "../../../platform/errors.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointMetadata, CheckpointRef } from "../../../snapshot/model/entry.ts";
import { readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatBytes, formatCount, formatDuration } from "../../render/format.ts";
import { type Column, renderTable } from "../../render/table.ts";

interface Row {
  readonly ref: CheckpointRef;
  /** Absent when manifest or config cannot be read. */
  readonly metadata: CheckpointMetadata | undefined;
}

interface Line extends Row {
  /** Live points that are listed as one line above this row. */
  readonly folded: readonly Row[];
}

export const command = defineCommand({
  about:
    "Lists the checkpoints of a mission, oldest first. SIZE is the size of the cell, STORED what this checkpoint added " +
    "to the vault. Live points, which are taken while the agent works, are folded into one line; the newest checkpoint " +
    "and those with a message or a mark such as `pinned` are always listed. JSON lists all.",
  positionals: [MISSION_ARGUMENT],
  options: {
    last: { type: "number", short: "n", value: "N", summary: "list only the newest N" },
    all: { type: "flag", summary: "list each live point" },
  },
  examples: [
    ["lazarus checkpoints tidy-inbox", "all checkpoints"],
    ["lazarus checkpoints tidy-inbox --all", "with each live point"],
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
      () => renderRows(context, rows, options.all),
    );
    if (refs.length === 0)
      context.say(
        `${missionContext.mission} has no checkpoints; take one with: lazarus checkpoint ${missionContext.mission}`,
      );
    return 0;
  },
});

function renderRows({ machine, paint, terminal }: CliContext, rows: readonly Row[], all: boolean): string {
  if (rows.length === 0) return "";
  const nowMs = machine.clock.nowMs();
  const lines = all ? rows.map((row) => ({ ...row, folded: [] })) : foldLivePoints(rows);
  return renderTable<Line>(columns(nowMs), lines, terminal.columns, ({ folded }) =>
    folded.length === 0 ? undefined : paint.dim(describeFolded(folded, nowMs)),
  );
}

/** Folds runs of two or more live points. The newest checkpoint is never folded. */
function foldLivePoints(rows: readonly Row[]): Line[] {
  const lines: Line[] = [];
  let run: Row[] = [];
  for (const [i, row] of rows.entries()) {
    if (canFold(row) && i < rows.length - 1) {
      run.push(row);
      continue;
    }
    if (run.length === 1) lines.push({ ...run[0]!, folded: [] });
    lines.push({ ...row, folded: run.length > 1 ? run : [] });
    run = [];
  }
  return lines;
}

/** Live points without a message or mark. */
function canFold({ ref, metadata }: Row): boolean {
  const isMarked = ref.pinned || ref.provenAtMs !== null || metadata === undefined;
  return ref.reason === "live" && ref.message === null && !isMarked;
}

function describeFolded(folded: readonly Row[], nowMs: number): string {
  const [oldest, newest] = [folded[0]!, folded.at(-1)!].map((row) => formatAge(row, nowMs));
  return `+${formatCount(folded.length, "live point")} between ${oldest} and ${newest} ago`;
}

function formatAge({ ref }: Row, nowMs: number): string {
  return formatDuration((nowMs - ref.createdAtMs) / 1000);
}

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

function listMarks(row: Row): string {
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

/** The user's message and the turn of the conversation. */
function describeRow({ ref, metadata }: Row): string {
  const turn = metadata?.conversation === undefined ? null : turnText(metadata.conversation);
  return [ref.message, turn].filter((text) => text !== null).join("; ");
}

function columns(nowMs: number): Column<Row>[] {
  return [
    { head: "CHECKPOINT", cell: ({ ref }) => ref.id },
    { head: "AGE", cell: (row) => formatAge(row, nowMs), alignRight: true },
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
    { head: "MARKS", cell: listMarks },
    { head: "MESSAGE", cell: describeRow, shrinks: true },
  ];
}

function toDocument(row: Row): object {
  const { ref, metadata } = row;
  return {
    ...describeIndexed(ref),
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

/** What the index of the vault says about a checkpoint. */
export function describeIndexed(ref: CheckpointRef) {
  return {
    checkpoint_id: ref.id,
    created_ms: ref.createdAtMs,
    reason: ref.reason,
    message: ref.message,
    parent: ref.parent,
    pinned: ref.pinned,
    proven_ms: ref.provenAtMs,
    before_restore_of: ref.beforeRestoreOf,
  };
}
