// The transition of a record when the user changes what is granted (INV-11). Pure.
import { dropDecision, type MissionRecord } from "./record.ts";

/**
 * Changes what the user granted: an undefined setting is removed, an undefined resume command is kept. A decision that is
 * still pending, or waits for approval, is made again.
 */
export function grant(
  record: MissionRecord,
  settings: Readonly<Record<string, unknown>>,
  resumeCommand: readonly string[] | null | undefined,
): MissionRecord {
  const merged = Object.entries({ ...record.settings, ...settings }).filter(
    ([, value]) => value !== undefined,
  );
  const granted = {
    ...record,
    settings: Object.fromEntries(merged),
    // The options of `run` apply until they are changed here.
    revive: "revive" in settings ? null : record.revive,
    stall_seconds: "stall_seconds" in settings ? null : record.stall_seconds,
    resume_command: resumeCommand === undefined ? record.resume_command : resumeCommand,
  };
  const isOpen =
    record.decision !== null && record.decision.action !== "tombstone" && record.wish === "running";
  return isOpen ? dropDecision(granted) : granted;
}
