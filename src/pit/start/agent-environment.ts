// The environment of an agent's process: what was kept from `run`, or else the starter's, with the variables that tell the
// agent where it is.
import type { PitContext } from "../context.ts";
import { pitSocketFile } from "../paths.ts";
import { type Environment, readEnvironment } from "../record/environment.ts";
import type { MissionRecord } from "../record/record.ts";

/** Set by the keeper, or meant for the starter alone. */
const NOT_INHERITED = [
  "LAZARUS_MISSION",
  "LAZARUS_CELL",
  "LAZARUS_EPOCH",
  "LAZARUS_LIFE",
  "LAZARUS_HEARTBEAT",
  "LAZARUS_HOOKS",
  "NOTIFY_SOCKET",
];

/** Without the variables of a life that the starter itself runs in. */
export function inheritable(environment: PitContext["environment"]): Environment {
  const entries = Object.entries(environment);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && !NOT_INHERITED.includes(entry[0]);
    }),
  );
}

/** `given`: the environment of a life that a user starts. Throws when the environment that was kept cannot be read. */
export function agentEnvironment(
  context: PitContext,
  record: MissionRecord,
  given?: Environment | null,
): Record<string, string> {
  const kept =
    record.environment === null ? null : (given ?? readEnvironment(context.config, record.mission));
  const env: Record<string, string> = { ...inheritable({ ...(kept ?? context.environment), ...record.env }) };
  // Not in the environment of a service manager.
  if (record.terminal != null) env.TERM ??= "xterm-256color";
  // The agent's own `lazarus heartbeat` must find the same files from any directory.
  if (context.effective.file !== undefined) env.LAZARUS_CONFIG = context.effective.file;
  if (context.home !== undefined) env.LAZARUS_HOME = context.home;
  // For heartbeats over HTTP without a token; every later pit uses the same socket.
  env.LAZARUS_SOCKET = pitSocketFile(context.config.run_dir);
  env.LAZARUS_HEARTBEAT_URL = `http://localhost/v1/missions/${record.mission}/heartbeat`;
  return env;
}
