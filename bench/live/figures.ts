// Figures that several parts of the live bench need: rows of its table, sizes on disk, memory and CPU time of a process.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Score } from "../harness.ts";

export interface Figure {
  readonly name: string;
  readonly value: number;
}

/** One row: ours ÷ peer, with its goal. */
export function row(
  name: string,
  ours: Figure,
  peer: Figure,
  { goal, rounds = 1, unit }: { readonly goal?: number; readonly rounds?: number; readonly unit?: string },
): Score {
  return {
    name,
    ours: ours.name,
    oursMs: ours.value,
    peer: peer.name,
    peerMs: peer.value,
    ratio: ours.value / peer.value,
    goal,
    rounds,
    ...(unit === undefined ? {} : { unit }),
  };
}

export function directoryBytes(root: string): number {
  let bytes = 0;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  return bytes;
}

export function memoryMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

/** User and system time of a process in milliseconds. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
