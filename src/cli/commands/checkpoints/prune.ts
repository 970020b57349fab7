import { statfsSync } from "node:fs";
import { type PruneOptions, type PruneResult, prune } from "../../../snapshot/operations/prune.ts";
import { listVaults } from "../../../snapshot/operations/rebuild-registry.ts";
import type { Retention } from "../../../snapshot/settings.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { openKnownMission } from "../../open-mission.ts";
import { adviseOnSpace, isNearlyFull, type Removable } from "../../render/disk-space.ts";
import { formatBytes, formatCount } from "../../render/format.ts";

export const command = defineCommand({
  about:
    "Removes checkpoints by the retention policy, and data in the vault that no remaining checkpoint needs. The policy is " +
    "the `retention` section of the config; options override it for this call. These are never removed: the newest " +
    "checkpoint, the one that `latest` refers to, the newest one proven by a drill, pinned ones, the first baseline, live " +
    "points with a message, and the one that undoes the latest restore. Other live points have their own rule: all of " +
    "the last hour, then one per 10 minutes for a day, per hour for a week and per day for 30 days.",
  positionals: [{ name: "mission", summary: "only this mission (default: all)", optional: true, here: true }],
  options: {
    "dry-run": { type: "flag", short: "n", summary: "print what would be removed, remove nothing" },
    "keep-last": { type: "number", value: "N", summary: "keep the newest N" },
    "keep-hourly": { type: "number", value: "N", summary: "keep the newest of each of N hours" },
    "keep-daily": { type: "number", value: "N", summary: "keep the newest of each of N days" },
    "keep-weekly": { type: "number", value: "N", summary: "keep the newest of each of N weeks" },
    "keep-within": { type: "number", value: "SECONDS", summary: "keep everything younger than this" },
    "max-bytes": { type: "number", value: "BYTES", summary: "maximum size of the vault (0: no limit)" },
    unreadable: { type: "flag", summary: "also remove checkpoints whose manifest is damaged" },
  },
  examples: [
    ["lazarus prune --dry-run", "show what would be removed in all vaults"],
    ["lazarus prune tidy-inbox --keep-last 3 --keep-hourly 0 --keep-daily 7", "with another policy"],
  ],
  exits: ["missing", "damaged", "busy", "machine"],
  async run(context, { args, options }) {
    const overrides: Partial<Record<keyof Retention, number>> = {};
    for (const [key, value] of [
      ["keep_last", options["keep-last"]],
      ["keep_hourly", options["keep-hourly"]],
      ["keep_daily", options["keep-daily"]],
      ["keep_weekly", options["keep-weekly"]],
      ["keep_within_seconds", options["keep-within"]],
      ["max_bytes", options["max-bytes"]],
    ] as const) {
      if (value !== undefined) overrides[key] = value;
    }
    const missions =
      args.mission === undefined
        ? listVaults(context.config.config.vault_root)
        : [context.mission(args.mission)];
    const results: { mission: string; result: PruneResult }[] = [];
    for (const mission of missions) {
      results.push({
        mission,
        result: await pruneOne(
          context,
          mission,
          { dryRun: options["dry-run"], unreadable: options.unreadable },
          overrides,
        ),
      });
    }
    context.emit(
      "prune/1",
      {
        dry_run: options["dry-run"],
        missions: results.map(({ mission, result }) => ({
          mission_id: mission,
          removed: result.removed.map(({ id }) => id),
          kept: result.kept.map(({ id }) => ({ checkpoint_id: id, because: result.reasons.get(id) ?? [] })),
          removed_blobs: result.removedBlobs,
          freed_bytes: result.freedBytes,
          vault_bytes: result.vaultBytes,
          sweep_refused: result.sweepRefused,
        })),
      },
      () => results.map(({ mission, result }) => describe(mission, result, options["dry-run"])).join(""),
    );
    if (!options["dry-run"]) await sayDiskSpace(context, results);
    for (const { mission, result } of results) {
      if (result.sweepRefused !== null)
        context.warn(
          `${mission}: no data was removed: ${result.sweepRefused}; try: lazarus verify ${mission}, then ` +
            `lazarus prune ${mission} --unreadable, which removes checkpoints that cannot be restored`,
        );
    }
    return 0;
  },
});

async function pruneOne(
  context: CliContext,
  mission: string,
  options: Pick<PruneOptions, "dryRun" | "unreadable">,
  overrides: Partial<Retention>,
): Promise<PruneResult> {
  using missionContext = openKnownMission(context, context.mission(mission));
  const result = await prune(missionContext, {
    ...options,
    policy: { ...missionContext.settings.retention, ...overrides },
  });
  return result;
}

/** Prints what is free now and, on a nearly full disk, what would free more. */
async function sayDiskSpace(
  context: CliContext,
  results: readonly { readonly mission: string; readonly result: PruneResult }[],
): Promise<void> {
  const { vault_root: place } = context.config.config;
  if (results.length === 0 || context.globals.json) return;
  const sum = (bytesOf: (result: PruneResult) => number) =>
    results.reduce((bytes, { result }) => bytes + bytesOf(result), 0);
  const { bavail, blocks, bsize } = statfsSync(place);
  const [freeBytes, diskBytes] = [bavail * bsize, blocks * bsize];
  const freed = formatBytes(sum(({ freedBytes }) => freedBytes));
  const left = formatBytes(sum(({ vaultBytes }) => vaultBytes));
  context.say(`freed ${freed}; ${left} stored, ${formatBytes(freeBytes)} free on the disk of ${place}`);
  if (!isNearlyFull(freeBytes, diskBytes)) return;
  const more: Removable[] = [];
  for (const { mission } of results) {
    const { freedBytes } = await pruneOne(context, mission, { dryRun: true }, { max_bytes: 1 });
    more.push({ mission, bytes: freedBytes });
  }
  context.say(adviseOnSpace(more));
}

function describe(mission: string, result: PruneResult, dryRun: boolean): string {
  const { removed, kept, removedBlobs, freedBytes } = result;
  const verb = dryRun ? "would remove" : "removed";
  const head = `${mission}: ${verb} ${formatCount(removed.length, "checkpoint")} and ${formatCount(removedBlobs, "blob")} (${formatBytes(freedBytes)}), ${kept.length} kept\n`;
  const lines = removed.map(
    ({ id, reason }) => `  - ${id}  ${reason}: ${result.reasons.get(id)?.join(", ")}\n`,
  );
  const keptLines = dryRun
    ? kept.map(({ id, reason }) => `    ${id}  ${reason}: ${result.reasons.get(id)?.join(", ")}\n`)
    : [];
  return head + lines.join("") + keptLines.join("");
}
