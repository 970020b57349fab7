import { existsSync } from "node:fs";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { type IndexedCheckpoint, indexedMissions } from "../../../registry/checkpoints.ts";
import { openRegistry } from "../../../registry/registry.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import { listVaults } from "../../../snapshot/operations/rebuild-registry.ts";
import { type Verification, verifyVault } from "../../../snapshot/operations/verify.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { describeLost, findLost, openCliMission, requireMission } from "../../open-mission.ts";
import { formatBytes, formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Checks the index, the digest of every manifest and config, and the presence, size and table of contents of every " +
    "layer, and that the tree of every checkpoint can be restored. With --deep it reads and hashes every byte. Reports each " +
    "damaged object, the checkpoints it affects, and the newest intact checkpoint. Damaged blobs are set aside inside the " +
    "vault, so that the next checkpoint stores everything again.",
  positionals: [{ name: "mission", summary: "only this mission (default: all)", optional: true, here: true }],
  options: { deep: { type: "flag", summary: "read and hash every byte" } },
  examples: [
    ["lazarus verify", "quick check of every vault"],
    ["lazarus verify tidy-inbox --deep", "full check of one mission"],
  ],
  exits: ["missing", "damaged", "machine", "interrupted"],
  async run(context, { args, options }) {
    const missions = args.mission === undefined ? everyMission(context) : [context.mission(args.mission)];
    const results: Verification[] = [];
    for (const mission of missions) results.push(await verifyOne(context, mission, options.deep));
    context.emit(
      "verify/1",
      {
        deep: options.deep,
        damaged: results.some(({ findings }) => findings.length > 0),
        missions: results.map(({ mission, ...rest }) => ({
          mission_id: mission,
          checkpoints: rest.checkpoints,
          blobs: rest.blobs,
          bytes: rest.bytes,
          findings: rest.findings,
          quarantined: rest.quarantined,
          good: rest.good,
          hurt: rest.hurt,
          newest_good: rest.newestGood,
        })),
      },
      () => results.map((result) => describe(context, result)).join(""),
    );
    if (results.length === 0) context.say(`no vaults below ${context.config.config.vault_root}`);
    return results.some(({ findings }) => findings.length > 0) ? ERROR_KINDS.damaged.exit : 0;
  },
});

/** Missions with a vault, and those in the registry, whose vault may be missing entirely. */
function everyMission(context: CliContext): string[] {
  const { vault_root, registry_file } = context.config.config;
  const present = listVaults(vault_root);
  if (!existsSync(registry_file)) return present;
  try {
    using registry = openRegistry(context.machine, registry_file);
    return [...new Set([...present, ...indexedMissions(registry)])].sort();
  } catch (error) {
    context.warn(`could not check the registry for missing vaults: ${(error as Error).message}`);
    return present;
  }
}

async function verifyOne(context: CliContext, mission: string, deep: boolean): Promise<Verification> {
  using missionContext = openCliMission(context, context.mission(mission));
  const lost = findLost(context, missionContext);
  if (lost.length > 0) return lostVault(missionContext, lost, deep);
  requireMission(context, missionContext);
  const result = await verifyVault(missionContext.vault, {
    deep,
    onProgress: missionContext.onProgress,
    signal: context.signal,
  });
  missionContext.endProgress();
  if (result.findings.length > 0) {
    const data = { deep, findings: result.findings.length, newest_good: result.newestGood };
    await context.record({ kind: "verify", mission, data });
  }
  return result;
}

function lostVault(
  missionContext: MissionContext,
  lost: readonly IndexedCheckpoint[],
  deep: boolean,
): Verification {
  const ids = lost.map(({ id }) => id);
  const problem = describeLost(missionContext, lost);
  return {
    mission: missionContext.mission,
    deep,
    checkpoints: ids.length,
    blobs: 0,
    bytes: 0,
    findings: [{ object: LOST, problem, paths: [], hurts: ids }],
    quarantined: [],
    good: [],
    hurt: ids,
    newest: ids.at(-1) ?? null,
    newestGood: null,
  };
}

const LOST = "the vault";

function describe(context: CliContext, result: Verification): string {
  const { green, red } = context.paint;
  const { mission, checkpoints, findings, deep, hurt, newestGood } = result;
  const read = deep ? `, ${formatBytes(result.bytes)} read` : "";
  if (findings.length === 0)
    return `${green("good")}  ${mission}: ${formatCount(checkpoints, "checkpoint")}, ${formatCount(result.blobs, "blob")}${read}\n`;
  const isIndexDamaged = findings.some(({ object }) => object === "index.json");
  const extent = isIndexDamaged
    ? `the index; ${result.good.length} of ${formatCount(checkpoints, "checkpoint")} can be recovered`
    : `${hurt.length === 0 ? "none" : hurt.length} of ${formatCount(checkpoints, "checkpoint")} affected`;
  const lines = [`${red("damaged")}  ${mission}: ${extent}${read}`];
  for (const { object, problem, hurts, paths } of findings) {
    lines.push(`  ${escapeControls(object)}`, `    ${escapeControls(problem)}`);
    if (paths.length > 0) lines.push(`    files: ${paths.map(escapeControls).join(", ")}`);
    if (hurts.length > 0) lines.push(`    affects: ${shorten(hurts)}`);
  }
  if (result.quarantined.length > 0)
    lines.push(
      `  set aside in lazarus/quarantine of the vault: ${formatCount(result.quarantined.length, "blob")}`,
    );
  lines.push(newestGood === null ? "  no checkpoint is intact" : `  newest intact checkpoint: ${newestGood}`);
  lines.push(`  try: ${nextCommand(result)}`);
  return `${lines.join("\n")}\n`;
}

function nextCommand({ mission, findings, newestGood, newest }: Verification): string {
  if (findings.some(({ object }) => object === "index.json" || object === "oci-layout"))
    return "lazarus registry rebuild";
  if (findings.some(({ object }) => object === LOST))
    return "restore the vault directory (is its disk mounted?), or drop its checkpoints: lazarus registry rebuild";
  if (newestGood !== newest) return `lazarus checkpoint ${mission}, which stores the whole cell again`;
  return `lazarus restore ${mission} ${newestGood} --dry-run; older damaged checkpoints cannot be repaired`;
}

const SHOWN = 4;

function shorten(ids: readonly string[]): string {
  return ids.length <= SHOWN
    ? ids.join(", ")
    : `${ids.slice(-SHOWN).join(", ")} and ${ids.length - SHOWN} older`;
}
