import { unknownMission } from "../../../cell/known-missions.ts";
import type { WorktreeState } from "../../../cell/worktree-record.ts";
import { describeEffect } from "../../../effects/notes.ts";
import { type AgentState, describeConversation } from "../../../pit/describe.ts";
import { type MissionView, pitOwner, viewMission, viewMissions } from "../../../pit/view.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { formatCount, formatDuration } from "../../render/format.ts";
import { escapeControls, type Painter } from "../../render/paint.ts";
import { type Column, renderTable } from "../../render/table.ts";

export const command = defineCommand({
  about:
    "Prints a line per mission: the state of its agent, the time since its last activity, its last checkpoint and the " +
    "first change that no checkpoint holds, the number of revivals in the last 24 hours, and what happens next.",
  positionals: [{ name: "mission", summary: "show only this mission", optional: true, here: true }],
  options: { watch: { type: "flag", summary: "refresh until interrupted" } },
  examples: [
    ["lazarus status", "all missions"],
    ["lazarus status tidy-inbox --json", "one mission in detail"],
  ],
  exits: ["missing", "machine"],
  async run(context, { args, options }) {
    const source = { machine: context.machine, config: context.config.config };
    const mission = args.mission === undefined ? undefined : context.mission(args.mission);
    do {
      const missions = mission === undefined ? viewMissions(source) : [viewMission(source, mission)];
      if (missions[0] === undefined && mission !== undefined) {
        throw unknownMission(context.config.config, mission);
      }
      show(context, missions as MissionView[], pitOwner(source)?.pid ?? null, options.watch);
      if (options.watch) await context.machine.clock.sleep(WATCH_MS, context.signal);
    } while (options.watch && !context.signal.aborted);
    return 0;
  },
});

const WATCH_MS = 1000;
const CLEAR_SCREEN = "\x1b[H\x1b[2J";

function show(context: CliContext, missions: MissionView[], pit: number | null, watching: boolean): void {
  if (watching && context.terminal.outIsTerminal && !context.globals.json) context.terminal.out(CLEAR_SCREEN);
  const nowMs = context.machine.clock.nowMs();
  context.emit("status/1", { pit_pid: pit, missions }, () => {
    if (missions.length === 0) return "no missions yet; start one with: lazarus run my-mission -- COMMAND\n";
    const width = Math.min(context.terminal.columns, 120);
    const showsLive = pit !== null && missions.some((view) => describeUnsaved(view, nowMs) !== NOTHING);
    const table = renderTable(columns(context.paint, nowMs, showsLive), missions, width);
    return `${table}${missions.map(unprotectedLine).join("")}${missions.map(conversationLines).join("")}${missions.map(liveLines).join("")}${missions.map(doneSinceLines).join("")}${pit === null ? "no pit is running: nothing is saved or revived; start one with: lazarus pit" : `pit is running (process ${pit})`}\n`;
  });
}

function unprotectedLine({ mission_id, unprotected }: MissionView): string {
  if (unprotected === null) return "";
  return `${mission_id}: ${escapeControls(unprotected)} is not protected: no checkpoint holds its files; to protect it: lazarus run ${mission_id} --in ${shellWord(unprotected)} -- COMMAND\n`;
}

function conversationLines(view: MissionView): string {
  return describeConversation(view)
    .map((line) => `${view.mission_id}: ${line}\n`)
    .join("");
}

/** Why changes are saved later than promised, or not at all. */
function liveLines({ mission_id, live }: MissionView): string {
  const lines = [
    ...(live?.is_late && live.problem === null
      ? [
          `${formatCount(live.unsaved_changes, "change")} or more unsaved for longer than protect_within_seconds: protect_share or a burst delays the next point`,
        ]
      : []),
    ...(live?.problem ? [`changes are not being saved: ${live.problem}`] : []),
    ...(live?.unwatched ? [`changes are found by walking the cell: ${live.unwatched}`] : []),
  ];
  return lines.map((line) => `${mission_id}: ${escapeControls(line)}\n`).join("");
}

const MAX_LISTED = 10;

/** What was done after the checkpoint that a cell was last restored to. */
function doneSinceLines({ mission_id, done_since }: MissionView): string {
  if (done_since.length === 0) return "";
  const lines = done_since
    .slice(-MAX_LISTED)
    .map((effect) => `  ${escapeControls(describeEffect(effect))}\n`);
  const more =
    done_since.length > MAX_LISTED ? `  and ${done_since.length - MAX_LISTED} earlier; all: --json\n` : "";
  return `${mission_id}: done since the checkpoint it was restored to, and not undone:\n${lines.join("")}${more}`;
}

const NOTHING = "-";

function describeAge(ms: number | null | undefined, nowMs: number): string {
  return ms ? formatDuration(Math.max(0, nowMs - ms) / 1000) : NOTHING;
}

/** Age of the oldest unsaved change; "off" if live points are switched off although there is something to protect. */
function describeUnsaved({ live, state, worktree_state: place }: MissionView, nowMs: number): string {
  if (live !== null)
    return live.unsaved_since_ms === null ? "none" : describeAge(live.unsaved_since_ms, nowMs);
  const isProtectable =
    state === "running" || state === "paused" || (state === "none" && place === "in-place");
  return isProtectable ? "off" : NOTHING;
}

function columns(paint: Painter, nowMs: number, showsLive: boolean): Column<MissionView>[] {
  const age = (ms: number | null | undefined) => describeAge(ms, nowMs);
  return [
    { head: "MISSION", cell: (view) => view.mission_id, shrinks: true },
    { head: "STATE", cell: (view) => view.state, paint: (text, view) => colorOf(paint, view.state)(text) },
    { head: "AGENT", cell: (view) => view.agent ?? "-", shrinks: true },
    { head: "ACTIVE", cell: (view) => age(view.last_activity_ms), alignRight: true },
    {
      head: "SAVED",
      cell: (view) => (view.unprotected === null ? age(view.last_checkpoint?.created_ms) : "unprotected"),
      alignRight: true,
    },
    ...(showsLive
      ? [
          {
            head: "UNSAVED",
            cell: (view: MissionView) => describeUnsaved(view, nowMs),
            alignRight: true,
          },
        ]
      : []),
    { head: "REV", cell: (view) => String(view.revivals_today), alignRight: true },
    {
      head: "NEXT",
      cell: describeNext,
      shrinks: true,
    },
  ];
}

/** A worktree outside the cell that needs a human. */
const PLACES: Partial<Record<WorktreeState, string>> = {
  missing: "the worktree is missing",
  replaced: "the worktree was replaced",
  released: "released",
  unknown: "the worktree is not known",
};

function describeNext(view: MissionView): string {
  if (view.cell === "gone") return "the cell is missing";
  const place = PLACES[view.worktree_state];
  if (place !== undefined) return place;
  // An agent has a keeper; a cell without one has only its heartbeats.
  if (view.state === "none" && view.cell === "stale") return "no heartbeat";
  return view.next_action;
}

function colorOf(paint: Painter, state: AgentState): (text: string) => string {
  if (state === "running") return paint.green;
  if (state === "tombstone" || state === "dead") return paint.red;
  if (state === "asking" || state === "waiting" || state === "ending" || state === "reviving")
    return paint.yellow;
  return (text) => text;
}
