// `pin` and `unpin` are one thing in two directions.
import { setPin } from "../../../snapshot/operations/pin.ts";
import { defineCommand } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";

export function definePinCommand(pinned: boolean, about: string) {
  const [name, state] = pinned ? ["pin", "pinned"] : ["unpin", "unpinned"];
  return defineCommand({
    about,
    positionals: [
      { name: "mission", summary: "id of the mission" },
      { name: "checkpoint", summary: "id, beginning of one, latest, or a time (latest)", optional: true },
    ],
    options: {},
    examples: [[`lazarus ${name} tidy-inbox 20261115-235301`, "by the beginning of its id"]],
    exits: ["missing", "busy", "damaged", "machine"],
    async run(context, { args }) {
      using missionContext = openKnownMission(context, context.mission(args.mission));
      const { ref, changed } = await setPin(missionContext, args.checkpoint, pinned);
      context.emit(
        "pin/1",
        { mission_id: missionContext.mission, checkpoint_id: ref.id, pinned: ref.pinned, changed },
        () => `${ref.id}\n`,
      );
      context.say(changed ? `${ref.id} is ${state}` : `${ref.id} was ${state} already`);
      return 0;
    },
  });
}
