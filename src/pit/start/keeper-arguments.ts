// The command line of keeper.sh, what a running keeper's says, and the script itself.
import { readFileSync } from "node:fs";
import { quietly } from "../../platform/errors.ts";
import { assetUrl } from "../../platform/worker-module.ts";
import type { TerminalSize } from "../terminal/size.ts";

/** Next to this file when sources run directly, in dist when they are bundled. */
export function readKeeperScript(): string {
  return readFileSync(assetUrl("keeper.sh", import.meta.url), "utf8");
}

/** In the order in which keeper.sh reads them; the agent's command follows. */
export interface KeeperArguments {
  readonly directory: string;
  readonly epoch: number;
  readonly bootId: string;
  readonly mission: string;
  readonly cell: string;
  readonly workingDirectory: string;
  /** Empty in the foreground, where output is not redirected, unless `copyErrors`. */
  readonly log: string;
  /** In the foreground: stderr also goes to the log. */
  readonly copyErrors?: boolean;
  readonly logLimitBytes: number;
  readonly logCount: number;
  readonly heartbeatFile: string;
  readonly heartbeatSeconds: number;
  readonly leftoverGraceSeconds: number;
  readonly token: string;
  /** Empty where there is none. */
  readonly cgroup: string;
  /** The programs that give the agent a terminal; absent without one. */
  readonly terminal?: (TerminalSize & { readonly node: string; readonly host: string }) | undefined;
}

export function keeperArguments(options: KeeperArguments, command: readonly string[]): string[] {
  const { terminal } = options;
  const values = [
    options.directory,
    options.epoch,
    options.bootId,
    options.mission,
    options.cell,
    options.workingDirectory,
    options.log,
    toInteger(options.logLimitBytes, 1),
    Math.min(toInteger(options.logCount, 0), MAX_LOGS),
    options.heartbeatFile,
    toInteger(options.heartbeatSeconds, 1),
    toInteger(options.leftoverGraceSeconds * 10, 0),
    options.token,
    options.cgroup,
    ...(terminal === undefined
      ? ["", "", "", ""]
      : [terminal.node, terminal.host, terminal.columns, terminal.rows]),
    options.copyErrors === true ? "tee" : "",
  ];
  return [...values.map(String), ...command];
}

/** The epoch on the command line of a running keeper; undefined when it cannot be read. */
export function keeperEpoch(pid: number): number | undefined {
  const words = (quietly(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? "").split("\0");
  const epoch = Number(words[words.findIndex((word) => /\/keeper-[0-9a-f]+\.sh$/.test(word)) + 2]);
  return Number.isSafeInteger(epoch) ? epoch : undefined;
}

const MAX_LOGS = 1000;
/** Larger numbers print with an exponent, which is a syntax error in shell arithmetic. */
const MAX_NUMBER = 1e15;

function toInteger(value: number, min: number): number {
  return Math.min(Math.max(min, Math.round(value)), MAX_NUMBER);
}
