// Keeps a copy of the effect history in the vault, up to date before a checkpoint is published: the vault alone is enough
// to bring a mission back without repeating what it did.
import { join } from "node:path";
import { mergeHistory, readHistoryBytes } from "../../effects/merge-history.ts";
import type { MissionContext } from "../mission-context.ts";

export function vaultHistory(vaultRoot: string): string {
  return join(vaultRoot, "lazarus", "effects.jsonl");
}

export function saveEffects({ machine, vault, effects }: MissionContext): void {
  const bytes = readHistoryBytes(effects.file);
  if (bytes.length === 0) return;
  mergeHistory(machine, vaultHistory(vault.root), bytes);
}
