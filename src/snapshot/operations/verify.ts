// Verifies the vault of a mission: reports every damaged object, the checkpoints that need it, and the newest intact
// checkpoint, and sets damaged blobs aside. Takes no lock: blobs that a concurrent prune removes are not reported as damage.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Progress } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { type Checker, createChecker, type Fault } from "../vault/check-blobs.ts";
import { recoverRefs } from "../vault/salvage.ts";
import type { Vault } from "../vault/vault.ts";

export interface Finding extends Fault {
  /** Ids of the checkpoints that need this object, oldest first. */
  readonly hurts: readonly string[];
}

/** The findings of a verification. */
export interface Verification {
  readonly mission: string;
  readonly deep: boolean;
  readonly checkpoints: number;
  /** Blobs and bytes that were checked. */
  readonly blobs: number;
  readonly bytes: number;
  readonly findings: readonly Finding[];
  /** Digests of the blobs that were set aside, so that the next checkpoint stores everything again. */
  readonly quarantined: readonly string[];
  readonly good: readonly string[];
  readonly hurt: readonly string[];
  /** The newest checkpoint, and the newest intact one. */
  readonly newest: string | null;
  readonly newestGood: string | null;
}

/** How thoroughly to verify. */
export interface VerifyOptions {
  readonly deep?: boolean;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const LAYOUT_VERSION = "1.0.0";
/** Attempts to verify while the index keeps changing. */
const MAX_ATTEMPTS = 4;

/** Verifies the blobs and manifests of a vault. */
export async function verifyVault(vault: Vault, options: VerifyOptions = {}): Promise<Verification> {
  for (let attempt = 1; ; attempt += 1) {
    const before = readIndex(vault);
    const result = await verifyOnce(vault, before, options);
    if (result.findings.length === 0) return result;
    // A missing blob may just have been pruned: it counts only if the index is unchanged.
    if (attempt === MAX_ATTEMPTS || readIndex(vault).text === before.text)
      return { ...result, quarantined: setAside(vault, result.findings) };
  }
}

const BLOB_OBJECT = /^(?:layer|manifest|config|record|document) (sha256:[0-9a-f]{64})$/;

function setAside(vault: Vault, findings: readonly Finding[]): string[] {
  const digests = new Set(findings.flatMap(({ object }) => BLOB_OBJECT.exec(object)?.[1] ?? []));
  return [...digests].filter(vault.quarantine.add);
}

interface IndexReading {
  readonly text: string | undefined;
  readonly refs: readonly CheckpointRef[];
  /** Damage of the index itself. */
  readonly problem?: string;
}

function readIndex(vault: Vault): IndexReading {
  let text: string | undefined;
  try {
    text = readFileSync(join(vault.root, "index.json"), "utf8");
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
  try {
    const refs = vault.list();
    return { text, refs };
  } catch (error) {
    if (!(error instanceof LazarusError) || error.code !== "VAULT_DAMAGED") throw error;
    return { text, refs: recoverRefs(vault), problem: error.message };
  }
}

async function verifyOnce(vault: Vault, index: IndexReading, options: VerifyOptions): Promise<Verification> {
  const deep = options.deep ?? false;
  const { refs } = index;
  const total = deep ? reachableBytes(vault) : refs.length;
  let done = 0;
  const checker = createChecker(vault, {
    deep,
    signal: options.signal,
    onBytes(count) {
      if (!deep) return;
      done += count;
      options.onProgress?.({ phase: "verifying", done, total, unit: "bytes" });
    },
  });
  const found = new Map<string, Finding>();
  const addFault = (fault: Fault, hurts: readonly string[]) => {
    const key = `${fault.object}\n${fault.problem}`;
    found.set(key, { ...fault, hurts: [...new Set([...(found.get(key)?.hurts ?? []), ...hurts])] });
  };
  const all = refs.map(({ id }) => id);
  if (index.problem !== undefined) addFault({ object: "index.json", problem: index.problem, paths: [] }, all);
  else if (refs.length > 0) checkLayout(vault, addFault);
  const good = await checkAll(checker, refs, addFault, (count) => {
    if (!deep) options.onProgress?.({ phase: "verifying", done: count, total, unit: "files" });
  });
  return {
    mission: vault.mission,
    deep,
    checkpoints: refs.length,
    blobs: checker.blobs,
    bytes: checker.bytes,
    findings: [...found.values()],
    quarantined: [],
    good,
    hurt: all.filter((id) => !good.includes(id)),
    newest: all.at(-1) ?? null,
    newestGood: good.at(-1) ?? null,
  };
}

async function checkAll(
  checker: Checker,
  refs: readonly CheckpointRef[],
  addFault: (fault: Fault, hurts: readonly string[]) => void,
  onDone: (count: number) => void,
): Promise<string[]> {
  const good: string[] = [];
  for (const [i, ref] of refs.entries()) {
    const faults = await checker.check(ref);
    if (faults.length === 0) good.push(ref.id);
    for (const fault of faults) addFault(fault, [ref.id]);
    onDone(i + 1);
  }
  return good;
}

/** Lazarus does not need `oci-layout`; skopeo, umoci and docker do. */
function checkLayout(vault: Vault, addFault: (fault: Fault, hurts: readonly string[]) => void): void {
  let version: unknown;
  try {
    version = JSON.parse(readFileSync(join(vault.root, "oci-layout"), "utf8"))?.imageLayoutVersion;
  } catch {}
  if (version === LAYOUT_VERSION) return;
  addFault(
    { object: "oci-layout", problem: "is missing or damaged: other tools cannot read this vault", paths: [] },
    [],
  );
}

function reachableBytes(vault: Vault): number {
  return vault.blobs().reduce((sum, { size }) => sum + size, 0);
}
