// `lazarus/testing`: replays races, crashes and power losses from a seed (INV-9), for tests of Lazarus and of agents built
// on it. Production code never imports it. arm-crash-point.ts is not exported: importing it arms the process, so load it
// with `node --import`.
export { type CrashPoint, listCrashPoints } from "./crash-points.ts";
export {
  createFaultyDisk,
  type DiskCall,
  type Fault,
  type FaultCode,
  type FaultyDisk,
} from "./faulty-disk.ts";
export { journalConformance } from "./journal-conformance.ts";
export { entryRow, headRow, type JournalPlace, journalWrite } from "./journal-rows.ts";
export { type RunStorePlace, runStoreConformance, type SuiteRunner } from "./run-store-conformance.ts";
export { createScriptedModel, type ScriptLine } from "./scripted-model.ts";
export { createRandom, createSeededIds, type Random } from "./seeded-ids.ts";
export { createSimulatedClock, SIMULATED_START_MS, type SimulatedClock } from "./simulated-clock.ts";
export { createSimulatedDisk, type SimulatedDisk } from "./simulated-disk.ts";
export {
  createSimulatedMachine,
  type SimulatedMachine,
  type SimulatedMachineOptions,
} from "./simulated-machine.ts";
export {
  createSimulatedProcesses,
  type SimulatedProcesses,
  type SimulatedProcessesOptions,
} from "./simulated-processes.ts";
export { createSystemError, type SystemError, type SystemErrorPlace } from "./system-error.ts";
