import { LazarusError } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import { comparePaths } from "../../../snapshot/model/path-bytes.ts";
import { readPathHistory, type Version } from "../../../snapshot/operations/path-history.ts";
import { createMatcher } from "../../../snapshot/path-patterns.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";
import { formatBytes, formatCount, formatDuration } from "../../render/format.ts";
import { type Column, renderTable } from "../../render/table.ts";
import { warnUnreadable } from "./point.ts";

export const command = defineCommand({
  about:
    "Finds files by name in all checkpoints, including deleted ones. A pattern without a slash matches a name at " +
    "any depth; * stays within a name and ** crosses directories. Each path is listed with the newest checkpoint that has it.",
  positionals: [
    MISSION_ARGUMENT,
    { name: "pattern", summary: "a name or a glob: '*.md', 'worktree/src/**'" },
  ],
  options: {
    deleted: { type: "flag", summary: "only what the latest checkpoint no longer has" },
  },
  examples: [
    ["lazarus find tidy-inbox notes.md", "where it is, and in which checkpoint"],
    ["lazarus find tidy-inbox '*.ts' --deleted", "sources that were deleted"],
  ],
  exits: ["missing", "damaged", "machine"],
  run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const { mission } = missionContext;
    if (!/[^/]/.test(args.pattern)) throw usage("find", "the pattern names no file");
    const isName = (path: string) => path === args.pattern || path.endsWith(`/${args.pattern}`);
    const isMatch = createMatcher([args.pattern]);
    const matches = (path: string) => isName(path) || isMatch(path);
    const history = readPathHistory(missionContext, { has: (path) => path !== "." && matches(path) });
    warnUnreadable(context, mission, history.unreadable);
    const rows = [...history.versions.values()]
      .map(toRow)
      .filter(({ isDeleted }) => isDeleted || !options.deleted)
      .sort((a, b) => comparePaths(a.path, b.path));
    context.emit(
      "find/1",
      {
        mission_id: mission,
        pattern: args.pattern,
        paths: rows.map(({ path, newest, isDeleted, versions }) => ({
          path,
          type: newest.entry!.type,
          size: newest.entry!.size,
          checkpoint_id: newest.last.id,
          checkpoint_ms: newest.last.createdAtMs,
          deleted: isDeleted,
          versions,
        })),
        unreadable: history.unreadable.map(({ id }) => id),
      },
      () =>
        rows.length === 0
          ? ""
          : renderTable(columns(context.machine.clock.nowMs()), rows, context.terminal.columns),
    );
    const count = formatCount(history.checkpoints.length, "checkpoint");
    context.say(`${formatCount(rows.length, "path")} in ${count}`);
    return 0;
  },
});

interface Row {
  readonly path: string;
  /** The newest version that exists. */
  readonly newest: Version;
  readonly isDeleted: boolean;
  readonly versions: number;
}

function toRow(versions: readonly Version[]): Row {
  const existing = versions.filter(({ entry }) => entry !== null);
  const newest = existing.at(-1)!;
  return { path: newest.path, newest, isDeleted: versions.at(-1)!.entry === null, versions: existing.length };
}

function columns(nowMs: number): Column<Row>[] {
  return [
    { head: "CHECKPOINT", cell: ({ newest }) => newest.last.id },
    {
      head: "AGE",
      cell: ({ newest }) => formatDuration((nowMs - newest.last.createdAtMs) / 1000),
      alignRight: true,
    },
    { head: "SIZE", cell: ({ newest }) => formatBytes(newest.entry!.size), alignRight: true },
    { head: "VERSIONS", cell: ({ versions }) => String(versions), alignRight: true },
    { head: "PATH", cell: ({ path, isDeleted }) => (isDeleted ? `${path} (deleted)` : path) },
  ];
}

/** The error for a path that no checkpoint has; names similar paths. */
export function unknownPath(missionContext: MissionContext, path: string): LazarusError {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const { versions } = readPathHistory(missionContext, {
    has: (each) => each === name || each.endsWith(`/${name}`),
  });
  const alike = [...versions.keys()].slice(0, 3).map((each) => JSON.stringify(each));
  const near = alike.length === 0 ? "" : `; similar: ${alike.join(", ")}`;
  const message = `no checkpoint of ${missionContext.mission} has ${JSON.stringify(path)}${near}`;
  return new LazarusError("NOT_FOUND", message, {
    hint: `lazarus find ${missionContext.mission} ${shellWord(`*${name.slice(0, 20)}*`)}`,
    details: { path },
  });
}
