// `lazarus/snapshot`: checkpoints of cells as a library. Nothing here touches the terminal, the environment or $HOME.

export type { MissionContext, Progress } from "./mission-context.ts";
export { type Change, type ChangeKind, compareListings } from "./model/diff.ts";
export type {
  CheckpointMetadata,
  CheckpointRef,
  Entry,
  EntryType,
  Flaw,
  GitPosition,
  Listing,
  Reason,
} from "./model/entry.ts";
export { findCheckpoint } from "./model/find-checkpoint.ts";
export {
  type OpenMissionOptions,
  openMission,
  openVault,
  rebuildRegistry,
  repairIndex,
} from "./open-mission.ts";
export { type CheckpointOptions, type CheckpointResult, takeCheckpoint } from "./operations/checkpoint.ts";
export { type CurrentListing, listCurrent } from "./operations/current-listing.ts";
export { type DrillOptions, type DrillResult, drill } from "./operations/drill.ts";
export { exportToFile } from "./operations/export.ts";
export { type ForkOptions, type ForkResult, forkMission } from "./operations/fork.ts";
export { type ImportOptions, type ImportResult, importCell } from "./operations/import.ts";
export { setPin } from "./operations/pin.ts";
export { type PruneOptions, type PruneResult, prune } from "./operations/prune.ts";
export type { Rebuild } from "./operations/rebuild-registry.ts";
export {
  previewRestore,
  type RestoreOptions,
  type RestoreResult,
  restoreCell,
} from "./operations/restore.ts";
export { type RestoreToOptions, type RestoreToResult, restoreTo } from "./operations/restore-into.ts";
export { type UndoResult, undoRestore } from "./operations/undo.ts";
export { type Verification, type VerifyOptions, verifyVault } from "./operations/verify.ts";
export { finishInterruptedRestore, type Restored } from "./restore/roll-forward.ts";
export { type Contents, openContents } from "./vault/contents.ts";
export { type Checkpoint, type LayerRef, readCheckpoint } from "./vault/manifest.ts";
export type { RepairResult } from "./vault/repair-index.ts";
export type { Vault } from "./vault/vault.ts";
