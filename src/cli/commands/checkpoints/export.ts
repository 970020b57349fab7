import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ERROR_KINDS, LazarusError } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { findCheckpoint } from "../../../snapshot/model/find-checkpoint.ts";
import { type ExportResult, exportCheckpoint, exportToFile } from "../../../snapshot/operations/export.ts";
import { CHECKPOINT_ARGUMENT, defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatBytes, formatCount } from "../../render/format.ts";
import { sayFlaws } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Writes a checkpoint as one .tar.gz file, which `tar xzf` turns back into the cell (`tar --xattrs -xpzf` with its " +
    "extended attributes). It includes secrets from " +
    "local-only layers, so protect the archive like the cell.",
  positionals: [MISSION_ARGUMENT, CHECKPOINT_ARGUMENT],
  options: {
    output: {
      type: "text",
      short: "o",
      value: "FILE",
      summary: "output file; - is stdout (default MISSION-ID.tar.gz)",
    },
  },
  examples: [
    ["lazarus export tidy-inbox -o inbox.tar.gz", "export the latest checkpoint"],
    ["lazarus export tidy-inbox yesterday -o - | tar tzv", "list the contents"],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "interrupted"],
  async run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const { mission, vault } = missionContext;
    const nowMs = context.machine.clock.nowMs();
    const ref = findCheckpoint(vault.list(), { mission, text: args.checkpoint, nowMs });
    const { signal } = context;
    if (options.output === "-") {
      if (context.terminal.outIsTerminal)
        throw new LazarusError("USAGE", "refusing to write an archive to a terminal", {
          hint: `lazarus export ${mission} -o FILE`,
        });
      const write = (bytes: Uint8Array) => context.terminal.out(bytes);
      return conclude(context, await exportCheckpoint(missionContext, ref, write, { signal }));
    }
    const file = resolve(context.surroundings.cwd, options.output ?? `${mission}-${ref.id}.tar.gz`);
    if (existsSync(file)) {
      throw new LazarusError("TARGET_NOT_EMPTY", `${file} already exists; not overwritten`, {
        hint: `lazarus export ${mission} ${ref.id} -o another.tar.gz`,
      });
    }
    const result = await exportToFile(missionContext, ref, file, { signal });
    missionContext.endProgress();
    context.emit(
      "export/1",
      {
        mission_id: mission,
        checkpoint_id: ref.id,
        file,
        entries: result.entries,
        bytes: result.bytes,
        raw_bytes: result.rawBytes,
        not_saved: result.notSaved,
      },
      () => `${file}\n`,
    );
    context.say(
      `${formatCount(result.entries, "entry", "entries")}, ${formatBytes(result.bytes)}; unpack with: ${unpackCommand(result, file)}`,
    );
    return conclude(context, result);
  },
});

/** By default, tar extracts no extended attributes, and with --xattrs only those in the `user` namespace. */
function unpackCommand({ xattrs }: ExportResult, file: string): string {
  if (xattrs.size === 0) return `tar xzf ${shellWord(file)}`;
  const others = [...xattrs].some((namespace) => namespace !== "user") ? " --xattrs-include='*'" : "";
  return `tar --xattrs${others} -xpzf ${shellWord(file)}`;
}

function conclude(context: CliContext, { notSaved }: ExportResult): number {
  sayFlaws(context, "not in the checkpoint, and therefore not in the archive:", notSaved);
  return notSaved.length > 0 ? ERROR_KINDS.degraded.exit : 0;
}
