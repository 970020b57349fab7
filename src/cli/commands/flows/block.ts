import { defineEndCommand } from "./end-command.ts";

export const command = defineEndCommand(
  "block",
  "blocked",
  "Marks a flow as blocked: it waits for something external, stays unfinished and can be resumed. Its owner keeps the lock.",
  "waiting for a person",
);
