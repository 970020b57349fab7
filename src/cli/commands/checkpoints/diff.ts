import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import type { ConversationPosition } from "../../../agents/conversation/cell.ts";
import { turnText } from "../../../agents/conversation/position.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import { diskPath } from "../../../snapshot/model/cell-tree.ts";
import {
  type Change,
  CONTENT_LIMIT_BYTES,
  compareListings,
  diffContent,
  isOnlyDirectoryTime,
  type ReadContent,
} from "../../../snapshot/model/diff.ts";
import type { Listing } from "../../../snapshot/model/entry.ts";
import { findCheckpoint } from "../../../snapshot/model/find-checkpoint.ts";
import { systemPath } from "../../../snapshot/model/path-bytes.ts";
import { type CurrentListing, listCurrent } from "../../../snapshot/operations/current-listing.ts";
import { requireKnown } from "../../../snapshot/operations/path-history.ts";
import { readPositionNow } from "../../../snapshot/operations/read-conversation.ts";
import { createScope } from "../../../snapshot/restore/scope.ts";
import { type Contents, openContents } from "../../../snapshot/vault/contents.ts";
import { readCheckpoint } from "../../../snapshot/vault/manifest.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { typedPaths } from "../../here.ts";
import { openKnownMission } from "../../open-mission.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Compares two checkpoints, or a checkpoint with the current cell: A added, M changed, D removed, T type changed, m " +
    "only metadata. With --content it also prints the changed lines of text files.",
  positionals: [
    MISSION_ARGUMENT,
    { name: "from", summary: "first checkpoint: an id, a time such as 1h (default latest)", optional: true },
    { name: "to", summary: "second checkpoint, or now: the current cell (default)", optional: true },
  ],
  options: {
    content: { type: "flag", short: "c", summary: "print the changed lines of text files" },
    path: { type: "texts", value: "PATH", summary: "only this path and below; may be repeated" },
    all: { type: "flag", summary: "also list directories whose time alone changed" },
  },
  examples: [
    ["lazarus diff tidy-inbox", "changes since the latest checkpoint"],
    ["lazarus diff tidy-inbox yesterday --content", "with changed lines"],
    ["lazarus diff tidy-inbox 20261115-235301 latest --path worktree", "between two checkpoints"],
  ],
  exits: ["missing", "damaged", "machine"],
  async run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    using before = openCheckpoint(missionContext, args.from);
    using after =
      args.to === undefined || args.to === "now"
        ? await openNow(missionContext)
        : openCheckpoint(missionContext, args.to);
    missionContext.endProgress();
    const scope = createScope(typedPaths(context, missionContext, options.path), missionContext.tree);
    requireKnown(missionContext, scope, {
      place: `${before.name} or ${after.name} of ${missionContext.mission}`,
      listings: [before.listing, after.listing],
      retry: (id, path) => `lazarus diff ${missionContext.mission} ${id} --path ${path}`,
    });
    const changes = compareListings(before.listing, after.listing).filter(
      (change) => scope.has(change.path) && (options.all || !isOnlyDirectoryTime(change)),
    );
    const shown = changes.map((change) => ({
      change,
      content: options.content ? diffContent(change, before.read, after.read) : undefined,
    }));
    context.emit(
      "diff/1",
      {
        mission_id: missionContext.mission,
        from: before.name,
        to: after.name,
        changes: shown.map(({ change, content }) => ({
          path: change.path,
          kind: change.kind,
          aspects: change.aspects,
          ...(content === undefined ? {} : { diff: content.text, note: content.note }),
        })),
        conversation: { from: before.conversation, to: after.conversation },
        flaws: after.flaws,
      },
      () =>
        changes.map((change) => nameLine(context, change)).join("") +
        shown
          .map(({ change, content }) =>
            content ? contentText(context, change, content.text, content.note) : "",
          )
          .join(""),
    );
    const counts = (["added", "changed", "removed", "type", "metadata"] as const)
      .map((kind) => [changes.filter((change) => change.kind === kind).length, kind] as const)
      .filter(([count]) => count > 0)
      .map(([count, kind]) => `${count} ${WORDS[kind]}`);
    context.say(
      `${before.name} → ${after.name}: ${counts.length === 0 ? "no difference" : counts.join(", ")}`,
    );
    const [then, later] = [before.conversation, after.conversation].map((each) =>
      each === null ? "none" : escapeControls(turnText(each)),
    );
    if (then !== later) context.say(`conversation: ${then} → ${later}`);
    for (const line of describeFlaws(after.flaws)) context.say(line);
    return 0;
  },
});

const LETTERS = { added: "A", changed: "M", removed: "D", type: "T", metadata: "m" } as const;
const WORDS = {
  added: "added",
  changed: "changed",
  removed: "removed",
  type: "with a different type",
  metadata: "in metadata only",
} as const;

interface Side extends Disposable {
  readonly name: string;
  readonly listing: Listing;
  readonly flaws: CurrentListing["flaws"];
  readonly conversation: ConversationPosition | null;
  readonly read: ReadContent;
}

function openCheckpoint(missionContext: MissionContext, text: string | undefined): Side {
  const { vault, mission, machine } = missionContext;
  const ref = findCheckpoint(vault.list(), { mission, text, nowMs: machine.clock.nowMs() });
  const { layers, metadata } = readCheckpoint(vault, ref);
  const contents: Contents = openContents(vault, layers);
  return {
    name: ref.id,
    conversation: metadata.conversation ?? null,
    listing: contents.listing,
    flaws: [],
    read(entry) {
      const parts: Buffer[] = [];
      contents.read(entry, (chunk) => parts.push(Buffer.from(chunk)));
      return Buffer.concat(parts);
    },
    [Symbol.dispose]: () => contents[Symbol.dispose](),
  };
}

async function openNow(missionContext: MissionContext): Promise<Side> {
  const { listing, flaws } = await listCurrent(missionContext);
  return {
    name: "now",
    conversation: await readPositionNow(missionContext),
    listing,
    flaws,
    read: (entry) => readNow(systemPath(diskPath(missionContext.tree, entry.path))),
    [Symbol.dispose]() {},
  };
}

/** The current content; undefined if it is missing, not a regular file, or too large. */
function readNow(path: string | Buffer): Buffer | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(fd);
    return stat.isFile() && stat.size <= 2 * CONTENT_LIMIT_BYTES ? readFileSync(fd) : undefined;
  } finally {
    closeSync(fd);
  }
}

function nameLine(context: CliContext, { kind, path, aspects, before, after }: Change): string {
  const { green, red, yellow, cyan, dim } = context.paint;
  const paint = { added: green, changed: yellow, removed: red, type: cyan, metadata: dim }[kind];
  const notes = kind === "type" ? [`${before?.type} → ${after?.type}`] : aspects;
  const more = notes.length > 0 && kind !== "changed" ? dim(`  (${notes.join(", ")})`) : "";
  return `${paint(LETTERS[kind])} ${escapeControls(path)}${more}\n`;
}

function contentText(context: CliContext, change: Change, text: string, note: string | null): string {
  if (text === "" && note === null) return "";
  const { bold, green, red, cyan, dim } = context.paint;
  const path = escapeControls(change.path);
  const old = change.before === undefined ? "/dev/null" : `a/${path}`;
  const now = change.after === undefined ? "/dev/null" : `b/${path}`;
  const head = `\n${bold(`--- ${old}`)}\n${bold(`+++ ${now}`)}\n`;
  if (note !== null) return `${head}${dim(`(not shown: ${note})`)}\n`;
  const lines = text.split("\n").slice(0, -1);
  const painted = lines.map((line) => {
    const safe = line.split("\t").map(escapeControls).join("\t");
    if (line.startsWith("+")) return green(safe);
    if (line.startsWith("-")) return red(safe);
    return line.startsWith("@@") ? cyan(safe) : safe;
  });
  return `${head}${painted.join("\n")}\n`;
}
