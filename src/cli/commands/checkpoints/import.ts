import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { DEFAULT_LIMITS } from "../../../snapshot/archive/source.ts";
import { importCell } from "../../../snapshot/operations/import.ts";
import { defineCommand } from "../../command.ts";
import { openCliMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { formatBytes, formatCount } from "../../render/format.ts";
import { sayDoneSince } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Creates a new cell with one checkpoint from an archive written by `lazarus export` or tar (plain, gzip or zstd), or " +
    "from an OCI layout such as a copied vault. An archive that is not a cell becomes the worktree of a new cell. " +
    "Archives are untrusted: paths outside the cell, writes through links and archive bombs are refused; devices, setuid " +
    "bits and privileged attributes are skipped and listed. The import is atomic.",
  positionals: [{ name: "source", summary: "archive, or directory of an OCI layout (DIR or DIR:TAG)" }],
  options: {
    mission: { type: "text", short: "m", value: "ID", summary: "id of the new mission (required)" },
    trusted: { type: "flag", summary: "keep setuid bits and privileged attributes" },
    "max-bytes": {
      type: "number",
      value: "BYTES",
      summary: `maximum unpacked size (default ${formatBytes(DEFAULT_LIMITS.maxBytes)})`,
    },
  },
  examples: [
    ["lazarus import inbox.tar.gz --mission tidy-inbox", "import an exported checkpoint"],
    [
      "lazarus import /backup/vault/tidy-inbox:20261115-235301-x7k2p9 -m inbox-2",
      "one checkpoint of a copied vault",
    ],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "busy", "unsupported", "interrupted"],
  async run(context, { args, options }) {
    if (options.mission === undefined) throw usage("import", "missing --mission ID");
    using missionContext = openCliMission(context, context.mission(options.mission));
    const { source, tag } = splitTag(resolve(context.surroundings.cwd, args.source));
    const limits = options["max-bytes"] === undefined ? {} : { maxBytes: options["max-bytes"] };
    const result = await importCell(missionContext, {
      source,
      tag,
      limits,
      trusted: options.trusted,
      owners: context.surroundings.isRoot,
      signal: context.signal,
    });
    missionContext.endProgress();
    const { ref, checkpoint } = result;
    const flaws = [...result.lost, ...result.flaws];
    context.emit(
      "import/1",
      {
        mission_id: missionContext.mission,
        checkpoint_id: ref.id,
        root: missionContext.cellRoot,
        as: result.as,
        counts: checkpoint.metadata.counts,
        done_since: result.doneSince,
        flaws,
      },
      () => `${ref.id}\n`,
    );
    const { files, bytes } = checkpoint.metadata.counts;
    context.say(
      `${missionContext.cellRoot}: ${formatCount(files, "file")}, ${formatBytes(bytes)}, imported as ${result.as === "cell" ? "a cell" : "the worktree of a new cell"}`,
    );
    sayDoneSince(context, result.doneSince);
    for (const line of describeFlaws(flaws)) context.say(line);
    return flaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
  },
});

/** DIR:TAG, as skopeo names an image of a layout. An existing path takes precedence. */
function splitTag(text: string): { source: string; tag: string | undefined } {
  const colon = text.lastIndexOf(":");
  if (colon < 0 || existsSync(text) || !existsSync(text.slice(0, colon)))
    return { source: text, tag: undefined };
  return { source: text.slice(0, colon), tag: text.slice(colon + 1) };
}
