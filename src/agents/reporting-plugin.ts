// Code that runs inside an agent's own process (OpenCode, Pi) and reports its events through `lazarus hook`. It waits for
// the hook, so that a tool call is on record before it runs, and never throws into the agent. Pure: text for a file.
import { dirname } from "node:path";
import type { FailurePatterns, HookEvent } from "./adapter.ts";
import { classifyMessage } from "./failure-patterns.ts";
import { parsePlainEvent } from "./plain-events.ts";
import { hooksFile } from "./session.ts";

/**
 * The part that all plugins share: `report(event)`, with an event of plain-events.ts, and `ended(call)` after a tool call. In a
 * run, `directory` is where the setup's files are, and the end of a call with an id costs no process: the line is appended here,
 * as the script of tool-reports.ts does it.
 */
export function reporterSource(command: readonly string[], directory: string | null): string {
  const lines = directory === null ? null : hooksFile(dirname(directory));
  return `// Written by Lazarus for one run; it may be deleted at any time.
import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
const [program, ...args] = ${JSON.stringify(command)};
const LINES = ${JSON.stringify(lines)};
function report(event) {
  try {
    spawnSync(program, args, { input: JSON.stringify(event), stdio: ["pipe", "ignore", "ignore"], timeout: 10000 });
  } catch {}
}
function ended(call) {
  const epoch = Number(process.env.LAZARUS_EPOCH);
  if (LINES !== null && epoch > 0 && typeof call.id === "string") {
    const line = { at_ms: Date.now(), epoch, kind: "tool-end", call: { id: call.id, tool: "", summary: "", command: null } };
    try { return appendFileSync(LINES, "\\n" + JSON.stringify(line) + "\\n", { mode: 0o600 }); } catch {}
  }
  report({ kind: "tool-end", call });
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
