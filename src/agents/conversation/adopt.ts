// A fork or an import gets its own conversation: two missions in one session would write to one file (INV-4). Where the
// id is a UUID and the copy is text, the id is replaced everywhere, including in names; otherwise the conversation is left out.
// Works on a cell that no agent has seen yet.
import { dirname, join, relative } from "node:path";
import { removeFile } from "../../platform/durable.ts";
import { randomUuid } from "../../platform/ids.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { Adapter } from "../adapter.ts";
import { isUuid } from "../arguments.ts";
import { CONVERSATION_DIRECTORY, readSession, type Session, sessionFile, writeSession } from "../session.ts";
import type { ConversationCell } from "./cell.ts";
import { makeDirectories, putFile } from "./put-file.ts";
import { hasCopy, ownerFile, ownerText } from "./stage.ts";
import { listStaged, openStagedTree } from "./staged.ts";

export interface Adopted {
  /** The new session; null when the conversation was left out. */
  readonly session: string | null;
  readonly reason: string;
  /** What was written, relative to the cell: for the caller to sync. */
  readonly paths: readonly string[];
}

type NewCell = Pick<ConversationCell, "machine" | "cellRoot" | "findAdapter">;

/** Undefined when there is no conversation. */
export function adoptConversation(cell: NewCell): Adopted | undefined {
  const recorded = readSession(cell.cellRoot);
  if (recorded === undefined) return undefined;
  const adapter = cell.findAdapter(recorded.adapter);
  const refusal = findRefusal(cell, adapter, recorded);
  if (refusal !== undefined) {
    removeFile(cell.machine.disk, sessionFile(cell.cellRoot));
    removeTree(join(cell.cellRoot, CONVERSATION_DIRECTORY));
    return { session: null, reason: refusal, paths: ["."] };
  }
  const session = randomUuid(cell.machine.ids);
  const paths = renameSession(cell, adapter!, recorded.session!, session);
  // Epoch 0: the first life continues it.
  writeSession(cell.machine, cell.cellRoot, { ...recorded, session, since_epoch: 0 });
  return { session, reason: "it has its own session", paths };
}

function findRefusal(cell: NewCell, adapter: Adapter | undefined, { session }: Session): string | undefined {
  if (adapter === undefined) return "there is no adapter for its agent";
  if (session === null || !isUuid(session) || !hasCopy(cell, adapter, session))
    return "its session cannot be copied";
  const files = listStaged(openStagedTree(cell.cellRoot), adapter.name);
  return files.some(({ kind }) => kind === "sqlite") ? "its session is in a database" : undefined;
}

/** Both ids have the same length, so offsets stay valid. Some agents name files after the first eight digits. */
function renameSession({ machine, cellRoot }: NewCell, adapter: Adapter, from: string, to: string): string[] {
  const top = join(cellRoot, CONVERSATION_DIRECTORY);
  const old = join(top, adapter.name);
  const rename = (text: string) => text.replaceAll(from, to);
  const tree = openStagedTree(cellRoot);
  const files = tree.list().filter(({ path }) => path.startsWith(`${adapter.name}/`));
  const kept = files.map(({ path }) => {
    const name = rename(relative(adapter.name, path)).replaceAll(from.slice(0, 8), to.slice(0, 8));
    return { name, bytes: Buffer.from(rename(tree.read(path).toString("latin1")), "latin1") };
  });
  removeTree(old);
  for (const { name, bytes } of kept) {
    const directory = dirname(name);
    makeDirectories(machine.disk, top, directory === "." ? adapter.name : join(adapter.name, directory));
    putFile(machine.disk, join(old, name), bytes);
  }
  putFile(machine.disk, ownerFile(cellRoot), ownerText(adapter.name, to));
  const written = kept.flatMap(({ name }) => [dirname(join(old, name)), join(old, name)]);
  return [...written, top, ownerFile(cellRoot)].map((path) => relative(cellRoot, path));
}
