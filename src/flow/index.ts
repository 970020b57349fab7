// lazarus/flow: restart-safe workflows as a library. The same operations as `lazarus flow …`; a workspace and an owner
// are handed in, nothing here touches the terminal, the environment or the current directory.
export { type Changed, changeFlow, releaseFlow } from "./change.ts";
export {
  FLOW_STATUSES,
  type FlowDocument,
  type FlowStatus,
  formatIso,
  isExpired,
  isUnfinished,
  parseIsoMs,
  seal,
} from "./document.ts";
export { type ExecRequest, type ExecResult, execPlan } from "./exec.ts";
export { checkPlan, type Plan, type PlanStep, parsePlan } from "./exec-plan.ts";
export { type FlowList, type ListedFlow, listFlows, visitFlows } from "./list.ts";
export { type Mended, mendFlow } from "./mend.ts";
export { type OnceRequest, type OnceResult, runOnce } from "./once.ts";
export { type FlowName, findFlow, openFlow } from "./open-flow.ts";
export { type Owner, ownerOf, selfOwner } from "./owner.ts";
export { describeFlowMove, type FlowPosition, readFlowPositions } from "./positions.ts";
export { type Pruned, type PruneResult, pruneFlows } from "./prune.ts";
export type { BadFlow } from "./quarantine.ts";
export { type PassedOver, type Resumed, type ResumeRequest, resumeFlow } from "./resume.ts";
export { checkFlows, type SelfcheckReport, type SelfcheckResult, selfcheck } from "./selfcheck.ts";
export { type Started, type StartOptions, startFlow } from "./start.ts";
export { applyChange, type FlowChange, type NewFlow, type Transition } from "./transition.ts";
export type { FlowPlace, Workspace } from "./workspace.ts";
