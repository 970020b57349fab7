// Changes a flow: update, complete, fail, block. Order: refuse secrets → take the mutex → read file and lock → the pure
// transition → one durable write → release the lock if the flow is finished. This is the hot path between an agent's
// steps: it loads nothing that it does not need.
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type FlowDocument, formatFlow, isUnfinished } from "../document/document.ts";
import { type FlowName, findFlow, openFlow } from "../document/open-flow.ts";
import { refuseSecrets } from "../document/secrets.ts";
import { applyChange, type FlowChange } from "../document/transition.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import type { Owner } from "../locking/owner.ts";
import { lockedError, lockVerdict, readLock, releaseLock } from "../locking/resume-lock.ts";

/** A flow after a change. */
export interface Changed {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
  /** Messages for the user. */
  readonly remarks: readonly string[];
}

/** Changes a flow: completes steps, sets its status, adds notes. */
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
  return withChangeMutex(machine, mutexPath(place.directory, place.stem), () => {
    const before = openFlow(root, place);
    const lock = readLock(place);
    const verdict = lockVerdict(machine, lock, me);
    if (verdict === "held") throw lockedError(place, lock, "changing");
    const transition = applyChange(before, change, machine.clock.nowMs());
    if ("refused" in transition) throw finishedError(place, transition);
    const document = "to" in transition ? transition.to : before;
    if ("to" in transition) {
      const text = formatFlow(document);
      crashPoint("flow.change.before-write");
      replaceFile(machine.disk, place.file, text);
      crashPoint("flow.change.written");
    }
    // After the write: a crash in between leaves a lock on a finished flow, which does no harm.
    if (!isUnfinished(document) && verdict !== "free") {
      releaseLock(machine, place, me);
      crashPoint("flow.change.released");
    }
    return { place, document, remarks: transition.remarks };
  });
}

/** Releases the lock of a flow without changing the flow. `force` also removes the lock of a live owner. */
export async function releaseFlow(
  workspace: Workspace,
  name: FlowName,
  me: Owner,
  force = false,
): Promise<{ place: FlowPlace; released: boolean }> {
  const { machine, root } = workspace;
  const place = findFlow(root, name);
  return withChangeMutex(machine, mutexPath(place.directory, place.stem), () => {
    const lock = readLock(place);
    if (lock.kind === "none") return { place, released: false };
    if (lockVerdict(machine, lock, me) === "held" && !force) {
      const command = `lazarus flow release --workflow ${shellWord(place.stem)} --steal-lock`;
      throw lockedError(place, lock, "releasing", command);
    }
    const released = removeFile(machine.disk, place.lockFile);
    crashPoint("flow.release.removed");
    return { place, released };
  });
}

function finishedError(
  place: FlowPlace,
  { refused, message }: { refused: string; message: string },
): LazarusError {
  const stem = shellWord(place.stem);
  const hint =
    refused === "done"
      ? `lazarus flow show --workflow ${stem}; for a new run: lazarus flow start --workflow ${stem} --idempotency NEW-KEY …`
      : `lazarus flow update --workflow ${stem} --status in_progress, to reopen it`;
  return new LazarusError("FLOW_FINISHED", message, {
    hint,
    details: { workflowId: place.stem, status: refused },
  });
}
