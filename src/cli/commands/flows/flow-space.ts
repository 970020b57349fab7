// Shared by the flow commands: the workspace, the owner, and printing of flows. Text from flow files is untrusted: it is
// quoted and escaped before it is printed.
import { resolve } from "node:path";
import { refuseFenced } from "../../../cell/fence.ts";
import { worktreeOf } from "../../../cell/worktree-record.ts";
import type { Workspace } from "../../../flow/document/workspace.ts";
import { chooseCaller, readAncestors } from "../../../flow/locking/caller.ts";
import { type Owner, ownerOf, selfOwner } from "../../../flow/locking/owner.ts";
import { LazarusError } from "../../../platform/errors.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { escapeControls } from "../../render/paint.ts";

export const ROOT_OPTION = {
  root: {
    type: "text",
    value: "DIR",
    summary: "workspace (default: the worktree of LAZARUS_CELL, otherwise the current directory)",
  },
} as const satisfies Record<string, OptionSpec>;

export const WORKFLOW_OPTIONS = {
  workflow: { type: "text", short: "w", value: "ID", summary: "id of the workflow" },
  agent: {
    type: "text",
    value: "NAME",
    summary: "owner of the workflow, if several agents have one of that name",
  },
  ...ROOT_OPTION,
} as const satisfies Record<string, OptionSpec>;

export const OWNER_OPTIONS = {
  owner: {
    type: "text",
    value: "NAME",
    summary: "name of the lock owner (default LAZARUS_FLOW_OWNER)",
  },
  pid: { type: "number", value: "PID", summary: "process that owns the lock (default: the caller)" },
} as const satisfies Record<string, OptionSpec>;

/** The workspace: `--root`, else the worktree of the cell named by LAZARUS_CELL, else the current directory. */
export function workspaceOf(context: CliContext, options: { readonly root: string | undefined }): Workspace {
  const missionsRoot = () => context.config.config.missions_root;
  return { machine: context.machine, root: rootOf(context, options.root), missionsRoot };
}

function rootOf(context: CliContext, root: string | undefined): string {
  const { cwd, env } = context.surroundings;
  if (root !== undefined) return resolve(cwd, root);
  const cell = env.LAZARUS_CELL;
  if (!cell) return cwd;
  // A path, or a mission id.
  if (cell.includes("/")) return worktreeOf(resolve(cwd, cell));
  return worktreeOf(resolve(context.config.config.missions_root, context.mission(cell)));
}

/** The owner: the process given by --pid, otherwise the caller (see src/flow/locking/caller.ts). */
export function ownerFor(
  context: CliContext,
  options: { readonly owner: string | undefined; readonly pid: number | undefined },
): Owner {
  const { processes } = context.machine;
  refuseFenced(() => context.config.config, context.surroundings.env);
  const name = options.owner ?? context.surroundings.env.LAZARUS_FLOW_OWNER ?? null;
  if (options.pid !== undefined) {
    const owner = Number.isInteger(options.pid) ? ownerOf(processes, options.pid, name) : undefined;
    if (owner !== undefined) return owner;
    throw new LazarusError("USAGE", `there is no process with pid ${options.pid}`, {
      hint: "in a shell, $$ is its own pid: --pid $$",
    });
  }
  const pid = chooseCaller(readAncestors(context.callerPid));
  return ownerOf(processes, pid, name) ?? selfOwner(processes, name);
}

/** The value of a required option; the parser has no such concept. */
export function required(command: string, option: string, value: string | undefined): string {
  if (value !== undefined && value !== "") return value;
  throw usage(command, `missing option --${option}`);
}

const PRINTABLE = /^[ -~]*$/;

/** Text from a file as one line: shortened, with control characters escaped. */
export function shown(text: string, maxLength = 200): string {
  if (text.length <= maxLength && PRINTABLE.test(text)) return text;
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return escapeControls(cut);
}
