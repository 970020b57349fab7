// Reads index.json, and decodes it only when it has changed: a process that takes a live point every few seconds lists the
// checkpoints several times for each of them. Writes nothing.
import { type BigIntStats, readFileSync, statSync } from "node:fs";
import { systemClock } from "../../platform/clock.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { decodeIndex } from "./index-json.ts";

interface Reading {
  readonly text: string;
  readonly refs: readonly CheckpointRef[];
  /** Stat of the file when it was read; undefined while another write might not show in it. */
  readonly stat: BigIntStats | undefined;
}

/** Enough for the missions that are active at the same time. */
const MAX_READINGS = 32;
/** File systems keep times in ticks of up to 10 ms: a younger file may be replaced by one with the same stat. */
const YOUNG_MS = 100;
const readings = new Map<string, Reading>();

/** Throws the system's error when the file cannot be read, VAULT_DAMAGED when it cannot be decoded. */
export function readIndexFile(file: string): CheckpointRef[] {
  const known = readings.get(file);
  const stat = statSync(file, { bigint: true });
  if (known?.stat !== undefined && isSameStat(known.stat, stat)) return [...known.refs];
  const text = readFileSync(file, "utf8");
  const refs = known?.text === text ? known.refs : decodeIndex(text, file);
  // Taken before the file was read: if it was replaced in between, the next stat differs.
  remember(file, { text, refs, stat: isOld(stat) ? stat : undefined });
  return [...refs];
}

/** What this process has just written. */
export function rememberIndex(file: string, text: string, refs: readonly CheckpointRef[]): void {
  remember(file, { text, refs: [...refs], stat: undefined });
}

function remember(file: string, reading: Reading): void {
  readings.delete(file);
  readings.set(file, reading);
  if (readings.size > MAX_READINGS) readings.delete(readings.keys().next().value!);
}

function isOld({ ctimeMs }: BigIntStats): boolean {
  return systemClock.nowMs() - Number(ctimeMs) > YOUNG_MS;
}

function isSameStat(a: BigIntStats, b: BigIntStats): boolean {
  return (
    a.ino === b.ino &&
    a.dev === b.dev &&
    a.size === b.size &&
    a.ctimeNs === b.ctimeNs &&
    a.mtimeNs === b.mtimeNs
  );
}
