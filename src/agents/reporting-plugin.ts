// Code that runs inside an agent's own process (OpenCode, Pi) and reports its events through `lazarus hook`. It waits for
// the hook, so that a tool call is on record before it runs, and never throws into the agent. Pure: text for a file.
import type { FailurePatterns, HookEvent } from "./adapter.ts";
import { classifyMessage } from "./failure-patterns.ts";
import { parsePlainEvent } from "./plain-events.ts";

/** The part that all plugins share: `report(event)`, with an event of plain-events.ts. */
export function reporterSource(command: readonly string[]): string {
  return `// Written by Lazarus for one run; it may be deleted at any time.
import { spawnSync } from "node:child_process";
const [program, ...args] = ${JSON.stringify(command)};
function report(event) {
  try {
    spawnSync(program, args, { input: JSON.stringify(event), stdio: ["pipe", "ignore", "ignore"], timeout: 10000 });
  } catch {}
}
`;
}

/** Reads what a plugin reported. A failure comes with its message alone; one that matches no pattern is ignored. */
export function parseReported(patterns: FailurePatterns) {
  return (event: string, input: Readonly<Record<string, unknown>>): readonly HookEvent[] => {
    if (input.kind !== "failure" || typeof input.message !== "string") return parsePlainEvent(event, input);
    return parsePlainEvent(event, {
      ...input,
      class: input.class ?? classifyMessage(input.message, patterns),
    });
  };
}
