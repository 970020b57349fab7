// An import killed with SIGKILL at every crash point: there is a complete cell with its checkpoint, or no cell, and the
// repeated command succeeds or reports that the mission exists.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import type { Entry } from "../../src/snapshot/model/entry.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { encodeHeader, padding } from "../../src/snapshot/tar/header.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { draftEntry, fixtureContext } from "../snapshot/hand-made.ts";
import { runVictim, withCopy } from "./kill.ts";

const names = listCrashPoints(fileURLToPath(new URL("../../src", import.meta.url))).map(({ name }) => name);
const points = names.filter(
  (name) =>
    (name.startsWith("snapshot.import.") && name !== "snapshot.import.rolled-back") ||
    name.startsWith("snapshot.publish.") ||
    name.startsWith("snapshot.layer."),
);

let home: string;
let archive: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-import-kill-"));
  archive = join(home, "archive.tar.gz");
  const member = (path: string, content: string) => {
    const size = content.length;
    const header = encodeHeader(draftEntry({ path, content }) as Entry, { storedSize: size });
    return Buffer.concat([header, Buffer.from(content), Buffer.alloc(padding(size))]);
  };
  const members = Array.from({ length: 20 }, (_, i) => member(`file-${i}`, `content ${i}\n`));
  writeFileSync(archive, gzipSync(Buffer.concat([...members, Buffer.alloc(1024)])));
  mkdirSync(join(home, "lazarus"));
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

async function finish(copy: string): Promise<void> {
  const context = fixtureContext(systemMachine, copy);
  const whole = existsSync(context.cellRoot);
  expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
  if (whole) {
    await expect(importCell(context, { source: archive, owners: false })).rejects.toMatchObject({
      code: "TARGET_NOT_EMPTY",
    });
  } else await importCell(context, { source: archive, owners: false });
  expect(readFileSync(join(context.cellRoot, "worktree", "file-19"), "utf8")).toBe("content 19\n");
  expect(context.vault.list()).toMatchObject([{ reason: "import" }]);
  expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
  expect(readdirSync(context.config.missions_root).filter((name) => name !== "m" && !whole)).toEqual([]);
}

describe.concurrent("an import killed with SIGKILL", () => {
  for (const point of points) {
    it(`at ${point} leaves all or nothing, and can be repeated`, async () => {
      await withCopy(join(home, "lazarus"), async (copy) => {
        const ending = await runVictim(["import", copy, archive], point);
        expect(ending.signal, `${point} is never reached: ${ending.stderr}`).toBe("SIGKILL");
        await finish(copy);
      });
    });
  }

  it("while it cleans up after a killed import", async () => {
    await withCopy(join(home, "lazarus"), async (copy) => {
      await runVictim(["import", copy, archive], "snapshot.import.captured");
      const ending = await runVictim(["import", copy, archive], "snapshot.import.rolled-back");
      expect(ending.signal, ending.stderr).toBe("SIGKILL");
      await finish(copy);
    });
  });
});
