// What the last staging found: which bytes of a session's files are already in the cell, and the position after them. In the
// mission's cache, which can be deleted at any time: then everything is read and compared again.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../../platform/durable.ts";
import { isJsonObject, readJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Followed } from "../adapter.ts";
import { putFile } from "./put-file.ts";

/** A file that only grows. */
export interface LinesState {
  readonly kind: "lines";
  readonly dev: number;
  readonly ino: number;
  /** Bytes that are in the cell: whole lines. */
  readonly offset: number;
  /** Digest of the first and the last bytes before `offset`. */
  readonly edges: string;
  /** Digest of the parts in the cell: names, sizes, inodes, times. */
  readonly parts: string;
}

/** A file or database that is copied as a whole. */
export interface WholeState {
  readonly kind: "whole" | "sqlite";
  /** Identity, size and time of the source and of the copy. */
  readonly source: string;
  readonly copy: string;
}

export type FileState = LinesState | WholeState;

export interface StageState {
  readonly format: 1;
  readonly boot: string;
  readonly adapter: string;
  readonly session: string;
  readonly files: Readonly<Record<string, FileState>>;
  /** Null when the adapter reads the whole transcript every time. */
  readonly followed: Followed | null;
}

const stateFile = (cacheDirectory: string) => join(cacheDirectory, "conversation.json");
const LIMIT_BYTES = 16 * 1024 * 1024;

/** After a reboot nothing is trusted: the copies in the cell are not synced. */
export function readState(
  machine: Pick<Machine, "processes">,
  cacheDirectory: string,
  { adapter, session }: { readonly adapter: string; readonly session: string },
): StageState | undefined {
  const reading = readJsonFile(stateFile(cacheDirectory), LIMIT_BYTES);
  if (!reading.ok || !isJsonObject(reading.value.files)) return undefined;
  const state = reading.value as unknown as StageState;
  const isCurrent =
    state.format === 1 &&
    state.boot === machine.processes.bootId() &&
    state.adapter === adapter &&
    state.session === session;
  return isCurrent ? state : undefined;
}

export function writeState(
  machine: Machine,
  cacheDirectory: string,
  state: Omit<StageState, "format" | "boot">,
): void {
  if (!existsSync(cacheDirectory)) makeDirectory(machine.disk, cacheDirectory);
  const text = JSON.stringify({ format: 1, boot: machine.processes.bootId(), ...state });
  putFile(machine.disk, stateFile(cacheDirectory), Buffer.from(text));
}
