// `lazarus/snapshot`: checkpoints of cells as a library. Nothing here touches the terminal, the environment or $HOME.
export { type Rebuild, rebuildRegistry } from "../registry/rebuild.ts";
export { type CaptureOptions, type CaptureResult, captureCell, surveyCell } from "./capture.ts";
export { type Contents, openContents } from "./contents.ts";
export { type Change, type ChangeKind, compareListings } from "./diff.ts";
export { type DrillOptions, type DrillResult, drill } from "./drill.ts";
export type {
  CheckpointMetadata,
  CheckpointRef,
  Entry,
  EntryType,
  Flaw,
  GitPosition,
  Listing,
  Reason,
} from "./entry.ts";
export { exportToFile } from "./export.ts";
export { findCheckpoint } from "./find-checkpoint.ts";
export { type ForkOptions, type ForkResult, forkMission } from "./fork.ts";
export { type ImportOptions, type ImportResult, importCell } from "./import.ts";
export { type MendResult, mendIndex } from "./mend-index.ts";
export { type Checkpoint, type LayerRef, readCheckpoint } from "./oci/manifest.ts";
export { openVault, type Vault } from "./oci/vault.ts";
export { setPin } from "./pin.ts";
export { type PruneOptions, type PruneResult, prune } from "./prune.ts";
export {
  previewRestore,
  type RestoreOptions,
  type RestoreResult,
  restoreCell,
  restoreTo,
} from "./restore.ts";
export { finishInterruptedRestore, type Restored } from "./restore-finish.ts";
export { openRoom, type Progress, type Room, type RoomOptions } from "./room.ts";
export { type UndoResult, undoRestore } from "./undo.ts";
export { type Verification, type VerifyOptions, verifyVault } from "./verify.ts";
