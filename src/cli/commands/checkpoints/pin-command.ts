// `pin` and `unpin` differ only in the value they set.
import { setPin } from "../../../snapshot/operations/pin.ts";
import { CHECKPOINT_ARGUMENT, defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";

export function definePinCommand(pinned: boolean, about: string) {
  const [name, done, unchanged] = pinned
    ? ["pin", "is pinned", "was already pinned"]
    : ["unpin", "is no longer pinned", "was not pinned"];
  return defineCommand({
    about,
    positionals: [MISSION_ARGUMENT, CHECKPOINT_ARGUMENT],
    options: {},
    examples: [[`lazarus ${name} tidy-inbox 20261115-235301`, "by a prefix of its id"]],
    exits: ["missing", "busy", "damaged", "machine"],
    async run(context, { args }) {
      using missionContext = openKnownMission(context, context.mission(args.mission));
      const { ref, changed } = await setPin(missionContext, args.checkpoint, pinned);
      context.emit(
        "pin/1",
        { mission_id: missionContext.mission, checkpoint_id: ref.id, pinned: ref.pinned, changed },
        () => `${ref.id}\n`,
      );
      context.say(`${ref.id} ${changed ? done : unchanged}`);
      return 0;
    },
  });
}
