import { indexCheckpoint } from "../../registry/checkpoints.ts";
import { readCheckpoint } from "../../snapshot/oci/manifest.ts";
import { setPin } from "../../snapshot/pin.ts";
import { defineCommand } from "../command.ts";
import { openKnownRoom } from "../known-room.ts";
import { noteRegistry } from "../note-registry.ts";

export const command = defineCommand({
  about: "Marks a checkpoint so that no prune removes it, whatever the policy says.",
  positionals: [
    { name: "mission", summary: "id of the mission" },
    { name: "checkpoint", summary: "id, beginning of one, latest, or a time (latest)", optional: true },
  ],
  options: {},
  examples: [["lazarus pin tidy-inbox 20261115-235301", "by the beginning of its id"]],
  exits: ["missing", "busy", "damaged", "machine"],
  async run(context, { args }) {
    using room = openKnownRoom(context, context.mission(args.mission));
    const { ref, changed } = await setPin(room, args.checkpoint, true);
    if (changed) {
      noteRegistry(context, (registry) =>
        indexCheckpoint(registry, room.mission, ref, readCheckpoint(room.vault, ref).metadata),
      );
    }
    context.emit(
      "pin/1",
      { mission_id: room.mission, checkpoint_id: ref.id, pinned: ref.pinned, changed },
      () => `${ref.id}\n`,
    );
    context.say(changed ? `${ref.id} is pinned` : `${ref.id} was pinned already`);
    return 0;
  },
});
