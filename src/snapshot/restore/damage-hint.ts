// When the checkpoint that someone needs is damaged, the error says which one is not: the newest whose every byte was
// just read and found right.
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { createChecker } from "../vault/check-blobs.ts";
import type { Vault } from "../vault/vault.ts";

/** Runs `work`; damage found by it is rethrown with the newest good checkpoint in the message and the hint. */
export async function namingTheGood<T>(
  vault: Vault,
  target: CheckpointRef,
  work: () => Promise<T> | T,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    const good = await newestGoodBut(vault, target);
    const cell = "the cell was not touched";
    throw new LazarusError(
      error.code,
      good === undefined
        ? `${error.message}; ${cell}; no other checkpoint of ${vault.mission} is whole`
        : `${error.message}; ${cell}; the newest checkpoint that is still good is ${good.id}`,
      {
        hint:
          good === undefined
            ? `lazarus verify ${vault.mission} --deep`
            : `lazarus restore ${vault.mission} ${good.id}`,
        details: { ...error.details, checkpoint: target.id, newest_good: good?.id ?? null },
        cause: error.cause,
      },
    );
  }
}

/** An error of the machine, with what it means for the user's files. */
export function withConsequence(
  error: unknown,
  doing: string,
  directory: string,
  consequence: string,
): LazarusError {
  const known = asLazarusError(error, doing, directory);
  if (known.kind === "damaged") return known;
  const { code, hint, details, cause } = known;
  return new LazarusError(code, `${known.message}; ${consequence}`, { hint, details, cause });
}

/** Safety checkpoints come last: they hold what the user wants to be rid of. */
async function newestGoodBut(vault: Vault, target: CheckpointRef): Promise<CheckpointRef | undefined> {
  const others = vault
    .list()
    .filter((ref) => ref.manifest !== target.manifest)
    .reverse();
  const safety = (ref: CheckpointRef) => ref.reason === "pre-restore";
  const checker = createChecker(vault, { deep: true });
  for (const ref of [...others.filter((each) => !safety(each)), ...others.filter(safety)]) {
    if ((await checker.check(ref)).length === 0) return ref;
  }
  return undefined;
}
