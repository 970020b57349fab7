// Changes a flow: update, complete, fail, block. Order: secrets refused → guard → file and lock read → the pure
// transition → one durable write → the lock let go when the flow is finished. This is the hot path between an
// agent's steps: it loads nothing that it does not need.
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type FlowDocument, formatFlow, isUnfinished } from "../document/document.ts";
import { type FlowName, findFlow, openFlow } from "../document/open-flow.ts";
import { refuseSecrets } from "../document/secrets.ts";
import { applyChange, type FlowChange } from "../document/transition.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import type { Owner } from "../locking/owner.ts";
import { lockedError, readLock, releaseLock, verdictFor } from "../locking/resume-lock.ts";

export interface Changed {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
  /** What the caller may want to know, in words. */
  readonly remarks: readonly string[];
}

export async function changeFlow(
  workspace: Workspace,
  name: FlowName,
  change: FlowChange,
  me: Owner,
): Promise<Changed> {
  const { machine, root } = workspace;
  const { notes, handoff, step, complete } = change;
  await refuseSecrets({ complete: complete?.join("\n"), step, notes, handoff });
  const place = findFlow(root, name);
  return withGuard(machine, guardPath(place.directory, place.stem), () => {
    const before = openFlow(root, place);
    const lock = readLock(place);
    const verdict = verdictFor(machine, lock, me);
    if (verdict === "held") throw lockedError(place, lock, "changing");
    const transition = applyChange(before, change, machine.clock.nowMs());
    if ("refused" in transition) throw finished(place, transition);
    const document = "to" in transition ? transition.to : before;
    if ("to" in transition) {
      const text = formatFlow(document);
      crashPoint("flow.change.before-write");
      replaceFile(machine.disk, place.file, text);
      crashPoint("flow.change.written");
    }
    // After the write: a crash in between leaves a lock on finished work, which hinders nobody.
    if (!isUnfinished(document) && verdict !== "free") {
      releaseLock(machine, place, me);
      crashPoint("flow.change.released");
    }
    return { place, document, remarks: transition.remarks };
  });
}

/** Lets go of a flow without changing it. A live owner's lock goes only with `force`. */
export async function releaseFlow(
  workspace: Workspace,
  name: FlowName,
  me: Owner,
  force = false,
): Promise<{ place: FlowPlace; released: boolean }> {
  const { machine, root } = workspace;
  const place = findFlow(root, name);
  return withGuard(machine, guardPath(place.directory, place.stem), () => {
    const lock = readLock(place);
    if (lock.kind === "none") return { place, released: false };
    if (verdictFor(machine, lock, me) === "held" && !force) {
      const instead = `lazarus flow release --workflow ${shellWord(place.stem)} --steal-lock`;
      throw lockedError(place, lock, "releasing", instead);
    }
    const released = removeFile(machine.disk, place.lockFile);
    crashPoint("flow.release.removed");
    return { place, released };
  });
}

function finished(
  place: FlowPlace,
  { refused, message }: { refused: string; message: string },
): LazarusError {
  const stem = shellWord(place.stem);
  const hint =
    refused === "done"
      ? `lazarus flow show --workflow ${stem}; a new run is a new one: lazarus flow start --workflow ${stem} --idempotency NEW-KEY …`
      : `lazarus flow update --workflow ${stem} --status in_progress, to take it up again`;
  return new LazarusError("FLOW_FINISHED", message, {
    hint,
    details: { workflowId: place.stem, status: refused },
  });
}
