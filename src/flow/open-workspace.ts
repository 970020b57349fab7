// Opens a workspace for programs that use flows as a library.
import { type Machine, systemMachine } from "../platform/machine.ts";
import type { Workspace } from "./document/workspace.ts";
import { type Owner, selfOwner } from "./locking/owner.ts";

/** A workspace and the process that works in it. */
export interface OpenWorkspace extends Workspace {
  /** This process, as the owner of the flows it resumes. */
  readonly me: Owner;
}

/**
 * Opens the workspace at `root`.
 *
 * @example
 * const workspace = openWorkspace("/srv/agent");
 * const flow = { workflow: "report", agent: "anna", idempotency: "report-11", step: "fetch" };
 * await startFlow(workspace, { ...flow, remaining: ["fetch", "send"] }, workspace);
 */
export function openWorkspace(
  root: string,
  {
    machine = systemMachine,
    owner = null,
  }: { readonly machine?: Machine; readonly owner?: string | null } = {},
): OpenWorkspace {
  return { root, machine, me: selfOwner(machine.processes, owner) };
}
