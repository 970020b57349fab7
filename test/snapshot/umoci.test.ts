// Difficult trees unpacked by umoci: after any edits and compactions it unpacks exactly the captured tree, with names that
// look like whiteouts in their escaped form.
import { join } from "node:path";
import { expect, it } from "vitest";
import { tarPath } from "../../src/snapshot/tar/header.ts";
import { createRandom } from "../../src/testing/index.ts";
import { isRoot } from "../plain-user.ts";
import { SEED } from "../seed.ts";
import { createHostileTree } from "./hostile-tree.ts";
import { createLab, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";
import type { ListedPath } from "./real-cell.ts";
import { isInstalled } from "./tools.ts";
import { unpackWithUmoci, withRecordedOwner } from "./umoci.ts";

const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 11);
interface UmociRow extends ListedPath {
  readonly mode: string;
  readonly xattrs?: Readonly<Record<string, string>>;
  readonly links?: string[];
}

const canUnpack = isInstalled("umoci", "hostile trees unpacked by umoci");

/**
 * umoci writes holes as zeros, and does not set the time of a directory from which a later layer removed something.
 * Rootless, it sets attributes after the mode, which fails for files that their owner may not write. PAX cannot express
 * an empty attribute.
 */
function comparable(line: string): string {
  const { holes: _, links, xattrs = {}, mtime_ns, ...row } = withRecordedOwner(JSON.parse(line)) as UmociRow;
  const time = row.type === "dir" ? undefined : mtime_ns;
  const readOnly = (Number.parseInt(row.mode, 8) & 0o200) === 0;
  const attributes = readOnly && !isRoot ? [] : Object.entries(xattrs).filter(([, value]) => value !== "");
  return JSON.stringify({ ...row, mtime_ns: time, attributes, links: links?.sort() });
}

function escaped(line: string): string {
  const row = JSON.parse(line);
  return JSON.stringify({ ...row, path: tarPath(row.path), links: row.links?.map(tarPath) });
}

it.skipIf(!canUnpack)(`umoci unpacks every checkpoint to its tree (seed ${SEED})`, async () => {
  const random = createRandom(SEED);
  using lab = createLab({ document: { retention: { auto: false } } });
  const hostile = createHostileTree(lab.worktree, random, { maxBytes: 5000, secrets: true });
  for (let i = 0; i < 25; i += 1) hostile.add();
  for (let round = 0; round < ROUNDS; round += 1) {
    const tree = listTree(lab.cell);
    const { ref } = await lab.checkpoint();
    const bundle = join(lab.directory, "bundle");
    const unpacked = listTree(unpackWithUmoci(`${lab.context.vault.root}:${ref.id}`, bundle));
    removeTree(bundle);
    expect(unpacked.map(comparable).sort(), `seed ${SEED}, round ${round}`).toEqual(
      tree.map(escaped).map(comparable).sort(),
    );
    for (let i = 0; i < 4; i += 1) hostile.edit();
  }
});
