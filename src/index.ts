// `lazarus`: cells, heartbeats, the scan and the registry. Other modules have their own entry (`lazarus/snapshot`,
// `lazarus/flow`, `lazarus/run`, `lazarus/pit`, `lazarus/testing`). Nothing here touches the terminal or $HOME.
export { type CellStatus, type Classification, classifyCell } from "./cell/classify.ts";
export {
  type Config,
  type EffectiveConfig,
  loadConfig,
  resolveConfig,
  type Surroundings,
} from "./cell/config.ts";
export type { BeatRequest, BeatResult } from "./cell/heartbeat.ts";
export { homeConfig } from "./cell/home-config.ts";
export type { InitResult } from "./cell/init.ts";
export type { BeatJobOptions, JobHeartbeat, JobReport } from "./cell/job.ts";
export { type CellPaths, cellPaths, type Heartbeat } from "./cell/layout.ts";
export { isMissionId, type MissionId, parseMissionId } from "./cell/mission-id.ts";
export type { CellReport, ScanReport } from "./cell/scan.ts";
export {
  beat,
  beatJob,
  checkJobs,
  initCell,
  type MachineOption,
  openRegistry,
  scanCells,
} from "./library.ts";
export { type Clock, systemClock } from "./platform/clock.ts";
export { ERROR_CODES, ERROR_KINDS, type ErrorCode, type ErrorKind, LazarusError } from "./platform/errors.ts";
export { type Machine, systemMachine } from "./platform/machine.ts";
export type { Event, EventKind, Registry } from "./registry/registry.ts";
