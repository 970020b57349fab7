// Takes a file back that failed its hash, after a person has looked at it: only a wrong hash can be mended, since only
// then is the content itself whole. Anything else is named, with the file to edit. The way back is journalled by
// order: the healthy file is durable in its place before the quarantined one goes.
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type BadFlow, findQuarantined } from "../document/bad-flow.ts";
import {
  FLOW_LIMIT_BYTES,
  type FlowDocument,
  formatFlow,
  judgeDocument,
  seal,
} from "../document/document.ts";
import { parseStem } from "../document/id.ts";
import { damaged, type FlowName } from "../document/open-flow.ts";
import { parseExact } from "../document/python-json.ts";
import { readFlow, readText } from "../document/read.ts";
import { type FlowPlace, listDirectories, locateFlow, type Workspace } from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import { audit } from "./audit.ts";

export interface Mended {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
  readonly from: string;
}

export async function mendFlow(workspace: Workspace, { workflow, agent }: FlowName): Promise<Mended> {
  const { machine, root } = workspace;
  const stem = parseStem(workflow);
  const found = findBad(root, stem, agent);
  return withGuard(machine, guardPath(found.place.directory, stem), async () => {
    const { place, bad } = found;
    const source = bad?.file ?? place.file;
    const document = sealed(place, source);
    if (bad === undefined) replaceFile(machine.disk, place.file, formatFlow(document));
    else if (!createFile(machine.disk, place.file, formatFlow(document))) {
      throw new LazarusError(
        "FLOW_EXISTS",
        `${place.file} exists; the quarantined ${source} was left alone`,
        {
          hint: `lazarus flow show -w ${shellWord(stem)}; then: rm ${shellWord(source)}`,
        },
      );
    }
    crashPoint("flow.mend.written");
    if (bad !== undefined) {
      removeFile(machine.disk, bad.file);
      if (bad.report !== null) removeFile(machine.disk, bad.report);
    }
    await audit(workspace, "mend", { workflowId: stem, from: source });
    return { place, document, from: source };
  });
}

function findBad(
  root: string,
  stem: string,
  agent: string | undefined,
): { place: FlowPlace; bad: BadFlow | undefined } {
  const place = locateFlow(root, stem, agent);
  if (place !== undefined && readFlow(place).state === "bad") return { place, bad: undefined };
  for (const directory of listDirectories(root)) {
    const found = findQuarantined(directory, stem);
    if (found !== undefined) return found;
  }
  throw new LazarusError(
    "FLOW_UNKNOWN",
    `${stem} needs no mending: no file of it is damaged or in quarantine`,
    {
      hint: `lazarus flow list --root ${shellWord(root)}`,
    },
  );
}

function sealed(place: FlowPlace, file: string): FlowDocument {
  const text = readText(file, FLOW_LIMIT_BYTES);
  if (typeof text !== "string") {
    if (text.state === "absent") throw new LazarusError("FLOW_UNKNOWN", `${file} is gone`);
    throw text.why === "unreadable" ? damaged({ ...place, file }, text) : beyondMending(file, text.reason);
  }
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    throw beyondMending(file, "is not JSON");
  }
  const verdict = judgeDocument(value, place.stem);
  if (verdict.ok) return verdict.document;
  if (verdict.why !== "hash") throw beyondMending(file, verdict.reason);
  return seal(value as FlowDocument);
}

function beyondMending(file: string, reason: string): LazarusError {
  return new LazarusError("FLOW_DAMAGED", `${file} ${reason}; only its owner can say what it should hold`, {
    hint: `edit ${shellWord(file)} and run the same command again, or remove it and start over`,
    details: { file },
  });
}
