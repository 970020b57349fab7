import { rebuildRegistry } from "../../../snapshot/operations/rebuild-registry.ts";
import { defineCommand } from "../../command.ts";
import { formatCount } from "../../render/format.ts";

export const command = defineCommand({
  about:
    "Rebuilds the registry's index of checkpoints from the vaults. A damaged index.json of a vault is repaired from the " +
    "manifests, and the damaged file is kept. A registry that cannot be read is moved aside, which loses its events; " +
    "otherwise events are kept.",
  positionals: [],
  options: {},
  examples: [["lazarus registry rebuild", "after a disk failure, or after copying a vault"]],
  exits: ["unsupported", "conflict", "busy", "machine"],
  async run(context) {
    const { missions, movedAside } = await rebuildRegistry(context.machine, context.config.config);
    context.emit(
      "registry-rebuild/1",
      {
        moved_aside: movedAside,
        missions: missions.map(({ mission, checkpoints, unreadable, repaired, keptAt }) => ({
          mission_id: mission,
          checkpoints,
          unreadable,
          mended: repaired,
          damaged_index_kept_at: keptAt,
        })),
      },
      () =>
        missions
          .map(({ mission, checkpoints }) => `${mission}: ${formatCount(checkpoints, "checkpoint")}\n`)
          .join(""),
    );
    if (movedAside !== null) context.warn(`the registry was unreadable and has been moved to ${movedAside}`);
    for (const { mission, unreadable, repaired, keptAt } of missions) {
      if (repaired !== null)
        context.warn(
          `${mission}: ${repaired}; repaired${keptAt === null ? "" : `, the damaged file is kept at ${keptAt}`}`,
        );
      if (unreadable.length > 0)
        context.warn(
          `${mission}: ${formatCount(unreadable.length, "checkpoint")} cannot be read; try: lazarus verify ${mission}`,
        );
    }
    if (missions.length === 0) context.say(`no vaults below ${context.config.config.vault_root}`);
    return 0;
  },
});
