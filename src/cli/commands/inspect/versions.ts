import { shellWord } from "../../../platform/shell-word.ts";
import { readPathHistory, type Version } from "../../../snapshot/operations/path-history.ts";
import { createScope } from "../../../snapshot/restore/scope.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { typedPaths } from "../../here.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatBytes, formatCount, formatDuration } from "../../render/format.ts";
import { type Column, renderTable } from "../../render/table.ts";
import { unknownPath } from "./find.ts";
import { toDocument } from "./ls.ts";
import { warnUnreadable } from "./point.ts";

export const command = defineCommand({
  about:
    "Lists the versions of one file that the checkpoints have, oldest first: each with the first checkpoint that has it. A " +
    "changed time alone is not a new version.",
  positionals: [
    MISSION_ARGUMENT,
    { name: "path", summary: "a file, relative to the cell or the current directory" },
  ],
  options: {},
  examples: [["lazarus versions tidy-inbox worktree/notes.md", "when it changed, and how large it was"]],
  exits: ["missing", "damaged", "machine"],
  run(context, { args }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const { mission, tree } = missionContext;
    const path = createScope(typedPaths(context, missionContext, [args.path]), tree).only?.[0] ?? ".";
    const only = new Set([path]);
    const history = readPathHistory(missionContext, { has: (each) => each === path, only });
    const versions = history.versions.get(path) ?? [];
    warnUnreadable(context, mission, history.unreadable);
    if (versions.length === 0) throw unknownPath(missionContext, path);
    context.emit(
      "versions/1",
      {
        mission_id: mission,
        path,
        versions: versions.map(describe),
        unreadable: history.unreadable.map(({ id }) => id),
      },
      () =>
        renderTable(columns(context.machine.clock.nowMs()), withKinds(versions), context.terminal.columns),
    );
    sayNext(context, mission, path, versions);
    return 0;
  },
});

function describe({ entry, first, last }: Version): object {
  return {
    first_checkpoint_id: first.id,
    first_ms: first.createdAtMs,
    last_checkpoint_id: last.id,
    last_ms: last.createdAtMs,
    entry: entry === null ? null : toDocument(entry),
  };
}

interface Row extends Version {
  readonly change: string;
}

function withKinds(versions: readonly Version[]): Row[] {
  return versions.map((version, i) => {
    const before = versions[i - 1]?.entry ?? null;
    const { entry } = version;
    if (entry === null) return { ...version, change: "removed" };
    if (before === null) return { ...version, change: i === 0 ? "first seen" : "added again" };
    const isContent = before.sha256 !== entry.sha256 || before.target !== entry.target;
    return { ...version, change: isContent || before.type !== entry.type ? "changed" : "mode changed" };
  });
}

function columns(nowMs: number): Column<Row>[] {
  return [
    { head: "CHECKPOINT", cell: ({ first }) => first.id },
    {
      head: "AGE",
      cell: ({ first }) => formatDuration((nowMs - first.createdAtMs) / 1000),
      alignRight: true,
    },
    { head: "CHANGE", cell: ({ change }) => change },
    { head: "SIZE", cell: ({ entry }) => (entry === null ? "-" : formatBytes(entry.size)), alignRight: true },
    { head: "SHA-256", cell: ({ entry }) => entry?.sha256.slice(0, 12) ?? "" },
  ];
}

function sayNext(context: CliContext, mission: string, path: string, versions: readonly Version[]): void {
  const before = versions.findLast(({ entry }, i) => entry !== null && i < versions.length - 1);
  const next = before ?? versions.at(-1)!;
  const point = `${mission}:${next.first.id} ${shellWord(path)}`;
  const shown =
    next.entry?.type === "file" ? `print one with: lazarus cat` : "look at one with: lazarus ls -l";
  context.say(`${formatCount(versions.length, "version")}; ${shown} ${point}`);
}
