import { definePinCommand } from "./pin-command.ts";

export const command = definePinCommand(
  true,
  "Protects a checkpoint from pruning, whatever the retention policy says.",
);
