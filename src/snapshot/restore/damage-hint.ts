// When a checkpoint is damaged, the damaged blob is set aside, and the error names the newest intact checkpoint: every byte of
// it was just verified. When the machine fails before the cell is touched, the error says so.
import { existsSync } from "node:fs";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { findIntact } from "../vault/check-blobs.ts";
import { quarantineDamage } from "../vault/quarantine.ts";
import type { Vault } from "../vault/vault.ts";

const UNTOUCHED = "the cell was not touched";

/** Rethrows damage found by `work` with the newest intact checkpoint in message and hint. */
export async function withGoodCheckpointHint<T>(
  vault: Vault,
  target: CheckpointRef,
  work: () => Promise<T> | T,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    quarantineDamage(vault, error);
    const good = await findNewestGood(vault, target);
    const [rest, hint] =
      good === undefined
        ? [`no other checkpoint of ${vault.mission} is intact`, `lazarus verify ${vault.mission} --deep`]
        : [
            `the newest checkpoint that is still good is ${good.id}`,
            `lazarus restore ${vault.mission} ${good.id}`,
          ];
    const details = { checkpoint: target.id, newest_good: good?.id ?? null };
    throw error.with({ consequence: `${UNTOUCHED}; ${rest}`, hint, details });
  }
}

/** Adds to an error what it means for the user's files. */
export function withConsequence(
  error: unknown,
  doing: string,
  directory: string,
  consequence: string,
): LazarusError {
  const known = asLazarusError(error, doing, directory);
  return known.kind === "damaged" ? known : known.with({ consequence });
}

/** Safety checkpoints come last: they hold the state that the user wants to replace. */
function findNewestGood(vault: Vault, target: CheckpointRef): Promise<CheckpointRef | undefined> {
  const others = vault
    .list()
    .filter((ref) => ref.manifest !== target.manifest)
    .reverse();
  const isSafety = (ref: CheckpointRef) => ref.reason === "pre-restore";
  const ordered = [...others.filter((ref) => !isSafety(ref)), ...others.filter(isSafety)];
  return findIntact(vault, ordered, { deep: true });
}

/**
 * For errors of the machine (disk full, no permission) before the cell is touched: hints at the restore that only reads.
 * With a journal, an earlier restore is unfinished, and the error says so.
 */
export async function withCellUntouchedHint<T>(
  context: MissionContext,
  target: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "machine" || existsSync(context.vault.journalFile))
      throw error;
    const readOnly = `lazarus restore ${context.mission}${target} --to DIR, which only reads the vault`;
    throw error.with({ consequence: UNTOUCHED, hint: error.hintOr(readOnly) });
  }
}
