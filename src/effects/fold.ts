// What a history says about each effect, as a pure function of its lines in order (INV-5). When two processes start the same
// attempt, the first line wins, and every reader comes to the same result.
import type { HistoryLine } from "./line.ts";

/** A line and where it is in the file. */
export interface PlacedLine {
  /** Byte offset of the line and of what follows it. */
  readonly at: number;
  readonly end: number;
  readonly line: HistoryLine;
}

/** One effect, according to the history. */
export interface KnownEffect {
  readonly source: HistoryLine["source"];
  readonly id: string;
  readonly digest: string;
  readonly state: "started" | "done" | "failed" | "unknown" | "withdrawn";
  readonly attempt: number;
  readonly name: string;
  readonly where: string;
  readonly what: string;
  readonly key: string | undefined;
  readonly owner: HistoryLine["owner"];
  readonly startedMs: number;
  readonly timeMs: number;
  /** Offset of the line that started the current attempt. */
  readonly startedAt: number;
  /** Offset and end of the line that gave it its state: its result is there. */
  readonly at: number;
  readonly end: number;
}

export interface Restore {
  readonly at: number;
  readonly timeMs: number;
  readonly checkpoint: string;
  readonly position: number | null;
}

export interface Fold {
  readonly effects: Map<string, KnownEffect>;
  /** In the order of the file. */
  readonly restores: Restore[];
  /** The last fork: from there on, keys are the mission's own. */
  fork: { readonly at: number; readonly identity: string; readonly from: string } | undefined;
  /** Lines that cannot be read. */
  damaged: number;
}

export function emptyFold(): Fold {
  return { effects: new Map(), restores: [], fork: undefined, damaged: 0 };
}

/** A tool call of a run with another input is another effect; a command or a call of an agent is identified by its id alone. */
export function identityOf({
  source,
  id,
  digest = "",
}: Pick<HistoryLine, "source" | "id" | "digest">): string {
  return source === "run" ? `run ${id} ${digest}` : `${source} ${id}`;
}

export function foldLine(fold: Fold, placed: PlacedLine): void {
  const { line, at } = placed;
  if (line.state === "restored") {
    const { time_ms: timeMs, id: checkpoint, position } = line;
    fold.restores.push({ at, timeMs, checkpoint, position: position ?? null });
    return;
  }
  if (line.state === "forked") {
    fold.fork = { at, identity: line.id, from: line.where ?? "" };
    return;
  }
  const identity = identityOf(line);
  const next = nextState(fold.effects.get(identity), { ...line, state: line.state }, placed);
  if (next !== undefined) fold.effects.set(identity, next);
}

type EffectLine = HistoryLine & { readonly state: KnownEffect["state"] };

/** The effect after one more line; undefined when the line changes nothing. */
function nextState(
  known: KnownEffect | undefined,
  line: EffectLine,
  { at, end }: PlacedLine,
): KnownEffect | undefined {
  const isStart = line.state === "started";
  if (known !== undefined) {
    // Done is final, and so is an attempt that was followed by another.
    if (known.state === "done" || line.attempt < known.attempt) return undefined;
    if (isStart && line.attempt === known.attempt) return undefined;
  }
  const begins = isStart || known === undefined || line.attempt > known.attempt;
  return {
    source: line.source,
    id: line.id,
    digest: line.digest ?? known?.digest ?? "",
    state: line.state,
    attempt: line.attempt,
    name: line.name ?? known?.name ?? line.id,
    where: line.where ?? known?.where ?? "",
    what: line.what ?? known?.what ?? "",
    key: known?.key ?? line.key,
    owner: isStart ? line.owner : known?.owner,
    startedMs: begins ? line.time_ms : known.startedMs,
    timeMs: line.time_ms,
    startedAt: begins ? at : known.startedAt,
    at,
    end,
  };
}

/** Whether the cell was restored after the current attempt of an effect started. */
export function isRestoredSince({ restores }: Fold, at: number): boolean {
  return restores.some((restore) => restore.at > at);
}
