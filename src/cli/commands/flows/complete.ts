import { defineEndCommand } from "./end-command.ts";

export const command = defineEndCommand(
  "complete",
  "done",
  "Marks a flow as done: no steps remain, the lock is released, and its idempotency key is recorded as done. Repeating it is harmless.",
  "mark it as done",
);
