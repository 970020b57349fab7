import { definePinCommand } from "./pin-command.ts";

export const command = definePinCommand(
  false,
  "Removes the pin from a checkpoint, so that the retention policy applies to it again.",
);
