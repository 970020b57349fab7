import { ERROR_KINDS } from "../../../platform/errors.ts";
import { drill } from "../../../snapshot/operations/drill.ts";
import { CHECKPOINT_ARGUMENT, defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatBytes, formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import { describeRef, sayFlaws } from "./restore-report.ts";

const SHOWN = 20;

export const command = defineCommand({
  about:
    "Restores a checkpoint into a scratch directory, compares every path independently (type, mode, owner, times, links, " +
    "content) and marks the checkpoint as proven. Needs as much free space as the cell; the cell is not touched.",
  positionals: [MISSION_ARGUMENT, CHECKPOINT_ARGUMENT],
  options: {},
  examples: [
    ["lazarus drill tidy-inbox", "test the latest checkpoint"],
    ["lazarus drill tidy-inbox --json | jq .differences", "in a script"],
  ],
  exits: ["missing", "damaged", "machine", "busy"],
  async run(context, { args }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const result = await drill(missionContext, { checkpoint: args.checkpoint, signal: context.signal });
    missionContext.endProgress();
    const { ref, paths, bytes, differences, flaws } = result;
    const proven = differences.length === 0;
    context.emit(
      "drill/1",
      { mission_id: missionContext.mission, checkpoint_id: ref.id, proven, paths, bytes, differences, flaws },
      () => {
        if (proven) return `proven: ${describeRef(ref)}\n`;
        const lines = differences
          .slice(0, SHOWN)
          .map(({ path, what }) => `  ${escapeControls(path)}: ${escapeControls(what)}`);
        if (differences.length > SHOWN)
          lines.push(`  … and ${differences.length - SHOWN} more; --json lists all`);
        return `NOT proven: ${describeRef(ref)}\n${lines.join("\n")}\n`;
      },
    );
    if (proven) context.say(`${formatCount(paths, "path")}, ${formatBytes(bytes)} restored and compared`);
    else {
      sayFlaws(context, "not restored exactly on this machine:", flaws);
      context.say(`try: lazarus verify ${missionContext.mission} --deep`);
    }
    return proven ? 0 : ERROR_KINDS.damaged.exit;
  },
});
