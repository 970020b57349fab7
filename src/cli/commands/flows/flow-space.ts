// What the flow commands share: which workspace they act on, for whom, and how a flow is shown. Text from flow files is
// data: it is quoted and made harmless, never printed as it is.
import { resolve } from "node:path";
import { refuseFenced } from "../../../cell/fence.ts";
import type { Workspace } from "../../../flow/document/workspace.ts";
import { chooseCaller, readAncestors } from "../../../flow/locking/caller.ts";
import { type Owner, ownerOf, selfOwner } from "../../../flow/locking/owner.ts";
import { LazarusError } from "../../../platform/errors.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { harmless } from "../../render/paint.ts";

export const ROOT_OPTION = {
  root: {
    type: "text",
    value: "DIR",
    summary: "the workspace (the cell's worktree when LAZARUS_CELL is set, else the current directory)",
  },
} as const satisfies Record<string, OptionSpec>;

export const WORKFLOW_OPTIONS = {
  workflow: { type: "text", short: "w", value: "ID", summary: "id of the workflow" },
  agent: {
    type: "text",
    value: "NAME",
    summary: "whose workflow, when several agents have one of that name",
  },
  ...ROOT_OPTION,
} as const satisfies Record<string, OptionSpec>;

export const OWNER_OPTIONS = {
  owner: {
    type: "text",
    value: "NAME",
    summary: "act under this name, whichever process calls (LAZARUS_FLOW_OWNER)",
  },
  pid: { type: "number", value: "PID", summary: "the process that works on it (the caller of this command)" },
} as const satisfies Record<string, OptionSpec>;

/** The workspace: `--root`, else the worktree of the cell named by LAZARUS_CELL, else the current directory. */
export function workspaceOf(context: CliContext, options: { readonly root: string | undefined }): Workspace {
  return { machine: context.machine, root: rootOf(context, options.root) };
}

function rootOf(context: CliContext, root: string | undefined): string {
  const { cwd, env } = context.surroundings;
  if (root !== undefined) return resolve(cwd, root);
  const cell = env.LAZARUS_CELL;
  if (!cell) return cwd;
  // A path, or the id of a mission of this machine.
  if (cell.includes("/")) return resolve(cwd, cell, "worktree");
  return resolve(context.config.config.missions_root, context.mission(cell), "worktree");
}

/** Who acts: the process named by hand, else the one that called this command (see src/flow/locking/caller.ts). */
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
    throw new LazarusError("USAGE", `no process with pid ${options.pid} is running, so it can own nothing`, {
      hint: "in a shell, $$ is its own pid: --pid $$",
    });
  }
  const pid = chooseCaller(readAncestors(context.callerPid));
  return ownerOf(processes, pid, name) ?? selfOwner(processes, name);
}

/** A required option; the parser knows no such thing. */
export function required(command: string, option: string, value: string | undefined): string {
  if (value !== undefined && value !== "") return value;
  throw usage(command, `lazarus ${command} needs --${option}`);
}

const PRINTABLE = /^[ -~]*$/;

/** Text from a file on one line: cut, and made harmless unless it is plain already. */
export function shown(text: string, most = 200): string {
  if (text.length <= most && PRINTABLE.test(text)) return text;
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return harmless(cut);
}
