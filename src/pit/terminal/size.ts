// The size of an agent's terminal, kept next to its record so that the next life gets the same one. Without a
// valid file, the default is used.
import { readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** What a struct winsize can hold. */
const MAX = 65_535;

export function isTerminalSize(value: unknown): value is TerminalSize {
  const { columns, rows } = (value ?? {}) as Record<string, unknown>;
  return [columns, rows].every((each) => Number.isInteger(each) && Number(each) > 0 && Number(each) <= MAX);
}

export function writeTerminalSize({ disk }: Machine, path: string, { columns, rows }: TerminalSize): void {
  writeJsonFile(disk, path, { columns, rows });
}

/** Undefined when none is kept. */
export function readTerminalSize(path: string): TerminalSize | undefined {
  const reading = readJsonFile(path);
  return reading.ok && isTerminalSize(reading.value) ? reading.value : undefined;
}
