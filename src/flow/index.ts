// lazarus/flow: restart-safe workflows as a library, with the same operations as `lazarus flow …`. Workspace and owner are
// injected; nothing here uses the terminal, the environment or the current directory.

export type { BadFlow } from "./document/bad-flow.ts";
export {
  FLOW_STATUSES,
  type FlowDocument,
  type FlowStatus,
  formatIso,
  isExpired,
  isUnfinished,
  parseIsoMs,
  withCheckpointHash,
} from "./document/document.ts";
export { type FlowList, type ListedFlow, listFlows, visitFlows } from "./document/list.ts";
export { type FlowName, findFlow, openFlow } from "./document/open-flow.ts";
export { applyChange, type FlowChange, type NewFlow, type Transition } from "./document/transition.ts";
export type { FlowPlace, Workspace } from "./document/workspace.ts";
export { type Owner, ownerOf, selfOwner } from "./locking/owner.ts";
export { type OnceRequest, type OnceResult, runOnce } from "./once/once.ts";
export { type OpenWorkspace, openWorkspace } from "./open-workspace.ts";
export { type AcceptedEdit, acceptEdit } from "./operations/accept-edit.ts";
export { type Changed, changeFlow, releaseFlow } from "./operations/change.ts";
export { type ExecRequest, type ExecResult, execPlan } from "./operations/exec.ts";
export { checkPlan, type Plan, type PlanStep, parsePlan } from "./operations/plan.ts";
export { describeFlowMove, type FlowPosition, readFlowPositions } from "./operations/positions.ts";
export { type Pruned, type PruneResult, pruneFlows } from "./operations/prune.ts";
export { type PassedOver, type Resumed, type ResumeRequest, resumeFlow } from "./operations/resume.ts";
export { type Started, type StartOptions, startFlow } from "./operations/start.ts";
export { checkFlows, type SelfcheckReport } from "./selfcheck/report.ts";
export { type SelfcheckResult, selfcheck } from "./selfcheck/selfcheck.ts";
