import { definePinCommand } from "./pin-command.ts";

export const command = definePinCommand(
  true,
  "Marks a checkpoint so that no prune removes it, whatever the policy says.",
);
