import { definePinCommand } from "./pin-command.ts";

export const command = definePinCommand(
  true,
  "Protects a checkpoint from pruning, regardless of the retention policy.",
);
