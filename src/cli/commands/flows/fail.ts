import { defineEndCommand } from "./end-command.ts";

export const command = defineEndCommand(
  "fail",
  "failed",
  "Marks a flow as failed and releases its lock. It is not resumed automatically; to continue it, use flow update --status in_progress, or start over.",
  "mark it as failed",
);
