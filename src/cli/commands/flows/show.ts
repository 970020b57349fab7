import { isExpired } from "../../../flow/document/document.ts";
import { findFlow, openFlow } from "../../../flow/document/open-flow.ts";
import { ageMinutes } from "../../../flow/document/transition.ts";
import { ownerFields } from "../../../flow/locking/owner.ts";
import { describeLock, readLock } from "../../../flow/locking/resume-lock.ts";
import { defineCommand } from "../../command.ts";
import { formatDuration } from "../../render/format.ts";
import { required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

const MAX_NOTES = 2000;

export const command = defineCommand({
  about:
    "Prints one workflow: its progress, lock owner and expiry. Steps and notes are printed as quoted data. Read-only; " +
    "takes no lock.",
  positionals: [],
  options: WORKFLOW_OPTIONS,
  examples: [["lazarus flow show -w report", "show its progress"]],
  exits: ["missing", "damaged", "machine", "unsupported"],
  run(context, { options }) {
    const { root, machine } = workspaceOf(context, options);
    const place = findFlow(root, {
      workflow: required("flow show", "workflow", options.workflow),
      agent: options.agent,
    });
    const flow = openFlow(root, place);
    const lock = readLock(place);
    const nowMs = machine.clock.nowMs();
    const expired = isExpired(flow, nowMs);
    const quoted = (text: string) => JSON.stringify(shown(text, MAX_NOTES));
    const list = (steps: readonly string[]) => (steps.length === 0 ? "-" : steps.map(quoted).join(" "));
    context.emit(
      "flow/1",
      {
        file: place.file,
        flow,
        lock: lock.kind === "owned" ? { ...ownerFields(lock.owner), takenAt: lock.takenAt } : lock.kind,
        expired,
      },
      () =>
        [
          ["workflow", shown(place.stem)],
          ["agent", quoted(flow.agentId)],
          ["status", `${flow.status}${expired ? " (expired)" : ""}`],
          ["step", quoted(flow.currentStep)],
          ["completed", list(flow.completedSteps)],
          ["remaining", list(flow.remainingSteps)],
          ["key", quoted(flow.idempotencyKey)],
          ["updated", `${flow.updatedAt} (${formatDuration(ageMinutes(flow, nowMs) * 60)} ago)`],
          ["expires", flow.expiresAt ?? "never"],
          ["locked by", shown(describeLock(lock))],
          ["hand-off to", flow.handoffTo ? quoted(flow.handoffTo) : "-"],
          ["notes (data)", flow.notes ? quoted(flow.notes) : "-"],
          ["file", shown(place.file, MAX_NOTES)],
        ]
          .map(([key, value]) => `${key!.padEnd(12)}  ${value}\n`)
          .join(""),
    );
    return 0;
  },
});
