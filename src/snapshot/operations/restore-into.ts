// Restores a checkpoint, or part of it, into an empty or missing directory. Reads the vault without its lock; the cell
// is not touched.
import { isAbsolute } from "node:path";
import { isInside } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { adoptCopies } from "../git/outside-adopt.ts";
import { type MissionContext, resolvePath } from "../mission-context.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { withGoodCheckpointHint } from "../restore/damage-hint.ts";
import { type FillResult, fillDirectory, prepareDirectory } from "../restore/fill-directory.ts";
import { createScope } from "../restore/scope.ts";
import { skippedPaths } from "../restore/shortfalls.ts";
import { createTableReader, openSource } from "../restore/source.ts";
import { requireKnown } from "./path-history.ts";
import { findTarget, openTarget } from "./restore-target.ts";

/** Which checkpoint and paths to restore into another directory. */
export interface RestoreToOptions {
  readonly directory: string;
  /** Id, prefix of an id, `latest`, or a time; default `latest`. */
  readonly checkpoint?: string | undefined;
  /** Only these paths and everything below them. */
  readonly paths?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** What was restored into the directory. */
export type RestoreToResult = FillResult & {
  readonly target: CheckpointRef;
  readonly directory: string;
  /** Paths that the checkpoint does not contain, because they were skipped when it was taken. */
  readonly notSaved: readonly Flaw[];
};

/** Restores a checkpoint into another directory; the cell does not change. */
export async function restoreTo(
  context: MissionContext,
  options: RestoreToOptions,
): Promise<RestoreToResult> {
  const { vault, mission, onProgress } = context;
  const { directory, signal } = options;
  refuseVault(context, directory);
  const target = findTarget(context, options.checkpoint);
  const scope = createScope(options.paths ?? [], context.tree);
  const opened = await openTarget(context, target, createTableReader(vault));
  return withGoodCheckpointHint(vault, target, async () => {
    const source = openSource(vault, opened);
    requireKnown(context, scope, {
      place: `checkpoint ${target.id} of ${mission}`,
      listings: [source.listing],
      retry: (id, path) => `lazarus restore ${mission} ${id} --path ${path} --to ${shellWord(directory)}`,
    });
    const { resumed } = prepareDirectory(directory, target.id);
    const filled = await fillDirectory(source, { directory, scope, onProgress, signal }, resumed);
    adoptCopies(directory, { isDuplicate: true });
    const notSaved = skippedPaths(source.checkpoint.metadata, scope);
    return { ...filled, notSaved, target, directory };
  });
}

function refuseVault({ config }: MissionContext, directory: string): void {
  const path = resolvePath(directory);
  const vaults = resolvePath(config.vault_root);
  if (isAbsolute(directory) && path !== vaults && !isInside(vaults, path)) return;
  throw new LazarusError("VAULT_MISPLACED", `${directory} is inside the vault ${config.vault_root}`, {
    hint: "choose a directory outside the vault",
  });
}
