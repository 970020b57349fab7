// The effect history of a mission (INV-5): one append-only file outside the cell. It is never restored, replaced or
// shortened. A line counts when it is on disk; a process appends its line before it acts. Appends need no lock: one write at
// the end of the file is atomic, the order in the file decides every race, and the writer reads its line back, so that one
// spoiled by another writer's torn line is written again.
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { crashPoint } from "../platform/crash-point.ts";
import { appendLine, makeDirectory } from "../platform/durable.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { emptyFold, type Fold, foldLine, identityOf, type KnownEffect } from "./fold.ts";
import { decodeLine, encodeLine, type HistoryLine } from "./line.ts";
import { findCell, historyFile } from "./place.ts";
import { readFrom } from "./read-from.ts";

/** The history of one mission. */
export interface EffectHistory {
  readonly file: string;
  /** What it says now. Reads only what was appended since the last call. */
  read(): Fold;
  /** Bytes written so far: what a checkpoint records. A line at or after it is later. */
  position(): number;
  find(source: "once" | "run" | "call", id: string, digest?: string): KnownEffect | undefined;
  /** The result in the line that gave the effect its state. */
  resultOf(effect: KnownEffect): unknown;
  /** Appends lines durably, in order. */
  append(...lines: readonly Omit<HistoryLine, "time_ms">[]): void;
  /** Starts an attempt. False when another process started the same attempt first. */
  start(line: Omit<HistoryLine, "time_ms" | "state">): boolean;
}

/** How often a spoiled line is written again. */
const MAX_TRIES = 3;

/** The history of the cell at `cellRoot`. The file is created by the first line. */
export function openHistory(machine: Machine, cellRoot: string): EffectHistory {
  return openHistoryFile(machine, historyFile(cellRoot));
}

/** The history of the mission that `path` belongs to, and the path relative to its cell; undefined outside a cell. */
export function openHistoryAt(
  machine: Machine,
  path: string,
  missionsRoot?: () => string,
): { readonly history: EffectHistory; readonly inside: string } | undefined {
  const cell = findCell(path, missionsRoot);
  return cell && { history: openHistoryFile(machine, cell.file), inside: cell.inside };
}

export function openHistoryFile(machine: Machine, file: string): EffectHistory {
  const fold = emptyFold();
  let end = 0;
  /** Returns the texts of the lines that are new. */
  const refresh = (): string[] => {
    const bytes = readFrom(file, end);
    const texts: string[] = [];
    for (let at = 0; ; ) {
      const newline = bytes.indexOf(NEWLINE, at);
      // Not terminated: torn, or still being written.
      if (newline < 0) {
        end += at;
        return texts;
      }
      const text = bytes.toString("utf8", at, newline);
      const line = decodeLine(text);
      if (line !== undefined) foldLine(fold, { at: end + at, end: end + newline + 1, line });
      else if (text !== "") fold.damaged += 1;
      texts.push(text);
      at = newline + 1;
    }
  };
  const appendText = (text: string): void => {
    for (let tries = 1; ; tries += 1) {
      try {
        if (tries === 1) makeDirectory(machine.disk, dirname(file));
        appendLine(machine.disk, file, text);
      } catch (error) {
        throw asLazarusError(error, `writing the effect history ${file}`, dirname(file));
      }
      if (refresh().includes(text)) return;
      if (tries === MAX_TRIES) {
        throw new LazarusError("DISK_IO", `the effect history ${file} does not hold what was written to it`, {
          hint: `check the disk: df -h ${dirname(file)}`,
        });
      }
    }
  };
  const history: EffectHistory = {
    file,
    read() {
      refresh();
      return fold;
    },
    position: () => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
    find(source, id, digest = "") {
      return history.read().effects.get(identityOf({ source, id, digest }));
    },
    resultOf: ({ at, end: lineEnd }) => decodeLine(readFrom(file, at, lineEnd - 1).toString("utf8"))?.result,
    append(...lines) {
      refresh();
      for (const line of lines) {
        appendText(encodeLine({ time_ms: Math.floor(machine.clock.nowMs()), ...line }));
        crashPoint("effects.append.appended");
      }
    },
    start(line) {
      const before = history.position();
      history.append({ ...line, state: "started" });
      const known = fold.effects.get(identityOf(line));
      // Of two lines with the same attempt the first counts; its `owner` shows which process wrote it.
      if (known === undefined || known.startedAt < before || known.attempt !== line.attempt) return false;
      return JSON.stringify(known.owner) === JSON.stringify(line.owner);
    },
  };
  return history;
}

const NEWLINE = 0x0a;
