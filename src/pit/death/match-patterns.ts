// Finds the newest line that one of several patterns matches, in a worker thread with a deadline per pattern. A pattern
// that misses its deadline is skipped and named, here and in every later search of this process.
import { stripVTControlCharacters } from "node:util";
import type { PatternClass } from "../../agents/adapter.ts";
import { startWorker } from "../../platform/worker-module.ts";

/** A regular expression for one line; its first group, if any, says when a quota resets. */
export interface Pattern {
  readonly class: PatternClass;
  readonly pattern: string;
}

export interface PatternTask {
  readonly lines: readonly string[];
  readonly patterns: readonly string[];
}

/** Sent before and after each pattern. `line`: the newest that it matches, or -1. */
export type PatternReply =
  | { readonly index: number; readonly done: false }
  | {
      readonly index: number;
      readonly done: true;
      readonly line: number;
      readonly group: string | undefined;
    };

export interface Words {
  readonly class: PatternClass;
  readonly line: string;
  readonly group: string | undefined;
}

export interface Search {
  /** The newest line that a pattern matches, by the first such pattern. */
  readonly words: Words | undefined;
  readonly skipped: readonly Pattern[];
  /** Those of `skipped` that missed their deadline in this search. */
  readonly newlySkipped: readonly Pattern[];
}

export interface SearchOptions {
  readonly deadlineMs?: number;
  /** Patterns that missed an earlier deadline. */
  readonly slow?: Set<string>;
}

/** A good pattern needs a millisecond for the whole tail. */
const DEADLINE_MS = 1000;
const MAX_SLOW = 5;
const slowPatterns = new Set<string>();

export async function searchPatterns(
  lines: readonly string[],
  patterns: readonly Pattern[],
  { deadlineMs = DEADLINE_MS, slow = slowPatterns }: SearchOptions = {},
): Promise<Search> {
  const plain = lines.map(stripVTControlCharacters);
  const newlySkipped: Pattern[] = [];
  let best: { readonly line: number; readonly words: Words } | undefined;
  let left = patterns.filter(({ pattern }) => !slow.has(pattern));
  while (left.length > 0 && plain.length > 0) {
    const { replies, stuckAt } = await runWorker(plain, left, deadlineMs);
    for (const { index, line, group } of replies)
      if (line > (best?.line ?? -1))
        best = { line, words: { class: left[index]!.class, line: plain[line]!, group } };
    if (stuckAt === undefined) break;
    slow.add(left[stuckAt]!.pattern);
    newlySkipped.push(left[stuckAt]!);
    // Every step of the pit is bounded: after several missed deadlines, the other patterns are not tried until the next death.
    left = newlySkipped.length < MAX_SLOW ? left.slice(stuckAt + 1) : [];
  }
  const skipped = patterns.filter(({ pattern }) => slow.has(pattern));
  return { words: best?.words, skipped, newlySkipped };
}

type Done = Extract<PatternReply, { done: true }>;

/** Ends with the last pattern, or with the first that misses its deadline. */
function runWorker(
  lines: readonly string[],
  patterns: readonly Pattern[],
  deadlineMs: number,
): Promise<{ readonly replies: Done[]; readonly stuckAt: number | undefined }> {
  return new Promise((resolve, reject) => {
    const worker = startWorker("pattern-worker", import.meta.url);
    const replies: Done[] = [];
    let timer: NodeJS.Timeout | undefined;
    const finish = (stuckAt: number | undefined) => {
      clearTimeout(timer);
      worker.removeAllListeners("message");
      void worker.terminate();
      resolve({ replies, stuckAt });
    };
    let started = false;
    // Without memory or a thread nothing is known about the patterns; once one runs, it is the one that fails.
    worker.on("error", (error) => (started ? finish(replies.length) : reject(error)));
    worker.on("message", (reply: PatternReply) => {
      started = true;
      clearTimeout(timer);
      if (reply.done) {
        replies.push(reply);
        if (replies.length === patterns.length) finish(undefined);
        return;
      }
      // A reply may be queued behind work of this thread: wait one more turn before the pattern counts as stuck.
      const isStuck = () => replies.length === reply.index && finish(reply.index);
      timer = setTimeout(() => setImmediate(isStuck), deadlineMs);
    });
    worker.postMessage({ lines, patterns: patterns.map(({ pattern }) => pattern) } satisfies PatternTask);
  });
}
