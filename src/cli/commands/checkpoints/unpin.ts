import { definePinCommand } from "./pin-command.ts";

export const command = definePinCommand(
  false,
  "Takes the pin off a checkpoint: from now on the retention policy decides about it.",
);
