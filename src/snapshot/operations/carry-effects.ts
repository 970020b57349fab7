// Copies the effect history together with its mission (INV-5): the copy in the vault is updated before every
// checkpoint is published; exports, imports and forks include it. It is written before the cell that it belongs to, so
// that no cell ever exists without its history.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { mergeHistory, readHistoryBytes } from "../../effects/merge-history.ts";
import { type EffectNote, effectsAfter } from "../../effects/notes.ts";
import { createFile, removeFile } from "../../platform/durable.ts";
import { randomText } from "../../platform/ids.ts";
import { vaultHistory } from "../capture/save-effects.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CarriedEffects } from "../model/carried-effects.ts";

/** The history in a vault or a copy of one. */
export function readVaultEffects(vaultRoot: string): Buffer {
  return readHistoryBytes(vaultHistory(vaultRoot));
}

/** Brings back from the vault what the history of the mission has lost, for example with the disk of the cells. */
export function recoverEffects({ machine, vault, effects }: MissionContext): void {
  const copy = readVaultEffects(vault.root);
  if (copy.length > effects.position()) mergeHistory(machine, effects.file, copy);
}

/** Gives a new mission the history of its origin. Returns the context for its first checkpoint. */
export function adoptEffects(context: MissionContext, carried: CarriedEffects): MissionContext {
  if (carried.bytes.length === 0) return context;
  const { machine, effects } = context;
  const position = mergeHistory(machine, effects.file, carried.bytes, carried.position);
  effects.append({ source: "mission", state: "restored", id: carried.checkpoint, attempt: 0, position });
  // The files of this mission do not show what the origin did after the checkpoint.
  return { ...context, effects: { ...effects, position: () => position } };
}

const NEW_HISTORY = "new-history";

/**
 * Before a new mission is staged: whether there is a history already, of an earlier mission of that name. That of an attempt
 * that was killed does not count, and is removed.
 */
export function hasEarlierHistory(context: MissionContext, staging: string): boolean {
  const { machine, effects, vault, cellRoot } = context;
  if (existsSync(join(staging, NEW_HISTORY)) && !existsSync(cellRoot))
    for (const file of [vaultHistory(vault.root), effects.file]) removeFile(machine.disk, file);
  return existsSync(effects.file);
}

/** Marks a staging directory before a history is written, for `hasEarlierHistory` of the next attempt. */
export function announceHistory({ machine }: MissionContext, staging: string): void {
  createFile(machine.disk, join(staging, NEW_HISTORY), "");
}

/**
 * For a new mission that could not be made: a later one of the same name must not find the history of another. `existed`:
 * there was a history before, of an earlier mission of that name.
 */
export function discardNewHistory({ machine, effects, cellRoot }: MissionContext, existed: boolean): void {
  if (existed || existsSync(cellRoot)) return;
  try {
    removeFile(machine.disk, effects.file);
  } catch {
    // The operation has failed already, and its error matters more.
  }
}

/** The history of a fork, for the user. */
export interface ForkedEffects {
  /** Suffix of the keys of its own tool calls. */
  readonly identity: string;
  /** What the origin did after the checkpoint; not repeated under the same key. */
  readonly doneSince: readonly EffectNote[];
}

/** Gives the fork its own identity: effects from here on are its own. */
export function nameFork(
  { machine, effects, mission }: MissionContext,
  from: string,
  position: number,
): ForkedEffects {
  const doneSince = effectsAfter(effects.read(), position);
  const identity = `${mission}-${randomText(machine.ids, 6)}`;
  effects.append({ source: "mission", state: "forked", id: identity, attempt: 0, where: from });
  return { identity, doneSince };
}
