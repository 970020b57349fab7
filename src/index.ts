// The library's front door: cells, heartbeats and the scan. Rooms with an API of their own have their own entry
// (`lazarus/flow`, `lazarus/snapshot`, `lazarus/run`, `lazarus/testing`). Nothing here touches the terminal or $HOME.
export { type CellStatus, type Classification, classifyCell } from "./cell/classify.ts";
export {
  type Config,
  type EffectiveConfig,
  loadConfig,
  resolveConfig,
  type Surroundings,
} from "./cell/config.ts";
export { type BeatResult, beat } from "./cell/heartbeat.ts";
export { type InitResult, initCell } from "./cell/init.ts";
export { beatJob, checkJobs, type JobReport, type Pulse } from "./cell/job.ts";
export { type CellPaths, cellPaths, type Heartbeat } from "./cell/layout.ts";
export { isMissionId, type MissionId, parseMissionId } from "./cell/mission-id.ts";
export { type CellReport, type ScanReport, scanCells } from "./cell/scan.ts";
export { type Clock, systemClock } from "./platform/clock.ts";
export { ERROR_CODES, ERROR_KINDS, type ErrorCode, type ErrorKind, LazarusError } from "./platform/errors.ts";
export { type Machine, systemMachine } from "./platform/machine.ts";
export { type Event, type EventKind, openRegistry, type Registry } from "./registry/registry.ts";
