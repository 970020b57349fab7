// Repairs a vault whose index.json is damaged or missing: the checkpoints are recovered from their manifests, the damaged
// file is kept under lazarus/, and a new index is published. An intact vault is not touched.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { timeOrderedId } from "../../platform/ids.ts";
import type { Machine } from "../../platform/machine.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { recoverRefs } from "./salvage.ts";
import type { Vault } from "./vault.ts";

/** What a repair of a vault's index changed. */
export interface RepairResult {
  readonly refs: readonly CheckpointRef[];
  /** The problem that was repaired; null when there was none. */
  readonly repaired: string | null;
  /** Where the damaged index is kept. */
  readonly keptAt: string | null;
}

export async function repairIndex(machine: Machine, vault: Vault): Promise<RepairResult> {
  if (diagnose(vault) === undefined) return { refs: vault.list(), repaired: null, keptAt: null };
  using _lock = await vault.lock(`repair of the index of ${vault.mission}`);
  // Checked again under the lock: a writer may have published a new index.
  const problem = diagnose(vault);
  if (problem === undefined) return { refs: vault.list(), repaired: null, keptAt: null };
  try {
    const keptAt = keepDamaged(machine, vault);
    crashPoint("snapshot.repair.kept");
    const refs = recoverRefs(vault);
    vault.publish(refs);
    return { refs, repaired: problem, keptAt };
  } catch (error) {
    throw asLazarusError(error, `repairing the vault ${vault.root}`, vault.root);
  }
}

/** The problem with the index or the layout file; undefined when there is none. */
function diagnose(vault: Vault): string | undefined {
  const layout = join(vault.root, "oci-layout");
  try {
    vault.list();
    if (!existsSync(layout)) return undefined;
    const { imageLayoutVersion } = JSON.parse(readFileSync(layout, "utf8"));
    return imageLayoutVersion === "1.0.0" ? undefined : "oci-layout is damaged";
  } catch (error) {
    if (error instanceof SyntaxError) return "oci-layout is damaged";
    if (error instanceof LazarusError && error.code === "VAULT_DAMAGED") return error.message;
    throw error;
  }
}

function keepDamaged(machine: Machine, vault: Vault): string | null {
  const layout = join(vault.root, "oci-layout");
  replaceFile(machine.disk, layout, `${JSON.stringify({ imageLayoutVersion: "1.0.0" })}\n`);
  let damaged: Buffer;
  try {
    damaged = readFileSync(join(vault.root, "index.json"));
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return null;
    throw error;
  }
  const id = timeOrderedId(machine.clock.nowMs(), machine.ids);
  const path = join(vault.root, "lazarus", `index-damaged-${id}.json`);
  createFile(machine.disk, path, damaged);
  return path;
}
