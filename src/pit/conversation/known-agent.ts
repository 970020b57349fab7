// Which agent CLI a command starts, and where that agent keeps its conversation. Reads nothing but links.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, Invocation, Place } from "../../agents/adapter.ts";
import { type Recognized, recognize } from "../../agents/recognize.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import type { MissionRecord } from "../record/record.ts";

export interface KnownAgent extends Recognized {
  readonly invocation: Invocation;
}

/** The agent that a command starts; undefined for a command without an adapter or without a conversation. */
export function recognizeAgent(
  { adapters }: { readonly adapters: readonly Adapter[] },
  command: readonly string[],
): KnownAgent | undefined {
  const found = recognize(command, adapters);
  if (found === undefined) return undefined;
  const invocation = found.adapter.parse(found.line.args);
  return invocation.isUtility ? undefined : { ...found, invocation };
}

/** The agent of a record, as it was recognized when the user started it. */
export function knownAgent(
  context: Pick<PitContext, "adapters">,
  { adapter, command }: Pick<MissionRecord, "adapter" | "command">,
): KnownAgent | undefined {
  const agent = adapter === null ? undefined : recognizeAgent(context, command);
  return agent?.adapter.name === adapter ? agent : undefined;
}

/** The whole command line with other arguments for the agent. */
export function commandWith({ line }: KnownAgent, ...args: readonly (readonly string[])[]): string[] {
  return [...line.prefix, line.program, ...args.flat()];
}

/** Where the agent of a record runs, and the variables that its adapter adds. */
export function placeOf(
  { config }: Pick<PitContext, "config">,
  record: Pick<MissionRecord, "mission" | "cwd">,
  { adapter, line }: KnownAgent,
  environment: Readonly<Record<string, string>>,
): { readonly place: Place; readonly added: Readonly<Record<string, string>> } {
  const cell = cellPaths(config, parseMissionId(record.mission));
  const cwd = realpathSync.native(record.cwd ?? cell.worktree);
  const env = { ...environment, ...assignments(line.prefix) };
  const place = { cwd, home: env.HOME ?? "/", env };
  const added = adapter.env?.(place, join(cell.root, "state", adapter.name)) ?? {};
  return { place: { ...place, env: { ...env, ...added } }, added };
}

/** `env NAME=VALUE …` in front of the program. */
function assignments(prefix: readonly string[]): Record<string, string> {
  const pairs = prefix.map((word) => /^([A-Za-z_]\w*)=(.*)$/s.exec(word)).filter((match) => match !== null);
  return Object.fromEntries(pairs.map(([, name, value]) => [name!, value!]));
}
