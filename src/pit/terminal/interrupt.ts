// The last Ctrl-C or Ctrl-\ typed at an agent's terminal. Written before the agent gets the key, so that the pit or command
// that handles the exit can tell a stop from a crash.
import { readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";

export interface Interrupt {
  readonly epoch: number;
  readonly signal: NodeJS.Signals;
  /** Wall clock. */
  readonly atMs: number;
}

export function writeInterrupt({ disk }: Machine, path: string, { epoch, signal, atMs }: Interrupt): void {
  writeJsonFile(disk, path, { epoch, signal, at_ms: atMs });
}

/** Undefined when nothing was typed in that life. */
export function readInterrupt(path: string, epoch: number): Interrupt | undefined {
  const reading = readJsonFile(path);
  if (!reading.ok || reading.value.epoch !== epoch) return undefined;
  const { signal, at_ms: atMs } = reading.value;
  return typeof signal === "string" && typeof atMs === "number"
    ? { epoch, signal: signal as NodeJS.Signals, atMs }
    : undefined;
}
