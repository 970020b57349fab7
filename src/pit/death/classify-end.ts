// How a life ended, judged from what is known of it: a pure function from facts to an end with its evidence. Looking for
// the facts is done in settle.ts.
import { createHash } from "node:crypto";
import type { Evidence, MissionRecord, RecordedEnd } from "../record/record.ts";
import type { PitSettings } from "../settings.ts";
import type { Exit } from "../start/life.ts";
import { findQuotaStop } from "./quota.ts";

export interface EndFacts {
  readonly record: MissionRecord;
  readonly settings: PitSettings;
  /** What the keeper stored; undefined when it vanished. */
  readonly exit: Exit | undefined;
  /** Whether the life began in this boot; undefined when its processes were never recorded. */
  readonly sameBoot: boolean | undefined;
  /** Processes that had outlived their keeper and were ended. */
  readonly survivors: number;
  /** The last sign of life that the files show, for an end whose moment nobody recorded. */
  readonly lastSignMs: number;
  /** The last lines of output. */
  readonly lastWords: readonly string[];
  readonly oomKillsNow: number | null;
  readonly oomLine: string | undefined;
  readonly diskFull: string | undefined;
  /** The host slept during this life, up to that moment. */
  readonly sleptUntilMs: number | undefined;
  readonly nowMs: number;
}

/** So soon after the host woke, a death is likely its doing. */
const AFTER_SLEEP_MS = 60_000;
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const LAST_WORDS_KEPT = 10;

export function judgeEnd(facts: EndFacts): RecordedEnd {
  const { record, exit, nowMs } = facts;
  const epoch = record.life?.epoch ?? 0;
  const stalled = record.stalled?.epoch === epoch ? record.stalled : undefined;
  const exitCode = exit?.exitCode ?? null;
  const signal = exit?.signal ?? null;
  const kind = stalled ? "stall" : exitCode === 0 ? "departure" : "crash";
  const atMs = exit?.endedMs ?? Math.min(Math.max(facts.lastSignMs, record.life?.started_ms ?? 0), nowMs);
  const quota =
    kind === "crash" ? findQuotaStop(facts.lastWords, nowMs, facts.settings.quotaPatterns) : undefined;
  const evidence = gather(facts, stalled?.reason, quota, atMs);
  const cause = exit === undefined ? (evidence[0]?.kind ?? "vanished") : "";
  return {
    epoch,
    kind,
    exit_code: exitCode,
    signal,
    at_ms: atMs,
    noticed_ms: nowMs,
    fingerprint: fingerprint([kind, String(exitCode), String(signal), cause], facts.lastWords),
    quota_reset_ms: quota?.resetMs ?? null,
    evidence,
    last_words: facts.lastWords.slice(-LAST_WORDS_KEPT),
    leftovers: (exit?.leftovers ?? 0) + facts.survivors,
  };
}

function gather(
  facts: EndFacts,
  stall: string | undefined,
  quota: { line: string; resetMs: number } | undefined,
  atMs: number,
): Evidence[] {
  const { record, exit, settings } = facts;
  const evidence: Evidence[] = [];
  const add = (kind: Evidence["kind"], says: string) => evidence.push({ kind, says });
  if (record.wish !== "running") add("human", `a human had said ${WISH_WORDS[record.wish]}`);
  if (stall !== undefined) add("stall", stall);
  if (exit === undefined) {
    if (facts.sameBoot === false)
      add("reboot", "the machine was started again since: every process of before is gone");
    else if (facts.sameBoot === undefined)
      add("never-started", "it was about to be started when whoever started it was killed");
    else add("keeper-vanished", "its keeper was killed, so nobody saw how it ended");
  }
  if (exit?.signal === "SIGKILL" || exit === undefined) {
    const before = record.life?.oom_kills ?? null;
    const struck = before !== null && facts.oomKillsNow !== null && facts.oomKillsNow > before;
    if (facts.oomLine !== undefined) add("oom", `the kernel ran out of memory: ${facts.oomLine}`);
    else if (struck && exit?.signal === "SIGKILL")
      add("oom", "the kernel's out-of-memory killer struck here during this life");
  }
  if (exit?.exitCode === NOT_FOUND)
    add("not-found", "exit code 127: the command, or one that it calls, was not found");
  if (exit?.exitCode === NOT_EXECUTABLE) add("not-found", "exit code 126: the command may not be executed");
  if (
    exit?.exitCode !== undefined &&
    exit.exitCode !== null &&
    settings.limits.permanentExitCodes.includes(exit.exitCode)
  )
    add("permanent", `exit code ${exit.exitCode} is declared permanent`);
  if (quota !== undefined && exit?.exitCode !== 0)
    add("quota", `its quota is used up: ${quota.line.trim().slice(0, 200)}`);
  const full =
    facts.diskFull ??
    facts.lastWords.findLast((line) => /no space left on device|ENOSPC|disk quota exceeded/i.test(line));
  if (full !== undefined && exit?.exitCode !== 0)
    add("disk-full", `the disk is full: ${full.trim().slice(0, 200)}`);
  const slept = facts.sleptUntilMs;
  if (slept !== undefined && atMs >= slept - AFTER_SLEEP_MS && atMs - slept < AFTER_SLEEP_MS)
    add("host-sleep", "the machine had just woken from sleep");
  const left = exit?.leftovers ?? 0;
  if (left > 0)
    add(
      "leftovers",
      `it left ${left} process${left === 1 ? "" : "es"} behind, which ${left === 1 ? "was" : "were"} ended`,
    );
  const { survivors } = facts;
  if (survivors > 0)
    add(
      "leftovers",
      `${survivors} of its processes had outlived the keeper and ${survivors === 1 ? "was" : "were"} ended`,
    );
  return evidence;
}

const WISH_WORDS = { stopped: "stop", paused: "pause", resting: "rest" } as const;

/** Equal for deaths that look alike: numbers, addresses and times in the last words do not count. */
export function fingerprint(facts: readonly string[], lastWords: readonly string[]): string {
  const words = lastWords
    .slice(-3)
    .map((line) => line.replaceAll(/0x[0-9a-f]+|[0-9a-f]{8,}|\d+/gi, "#").trim())
    .filter((line) => line !== "");
  return createHash("sha256")
    .update([...facts, ...words].join("\n"))
    .digest("hex")
    .slice(0, 16);
}
