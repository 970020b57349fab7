// `lazarus/pit`: supervision of agents inside another program.
export type { ReviveResult } from "./actions.ts";
export type { AgentState } from "./describe.ts";
export {
  type AgentOptions,
  openSupervisor,
  type StartedAgent,
  type Supervisor,
  type SupervisorOptions,
} from "./embed.ts";
export type { ReviveMode } from "./record/record.ts";
export type { StopOptions, StopResult } from "./stop.ts";
export type { MissionView } from "./view.ts";
