// The table of commands: name, group, one-line summary and loader. Only the command that runs is loaded, except for the
// two that agents and cron jobs call all day: they are part of the core chunk, which saves loading a file (0.5 ms).

import { AGENT_COMMANDS } from "./agent-commands.ts";
import * as heartbeat from "./commands/cells/heartbeat.ts";
import * as jobBeat from "./commands/cells/job-beat.ts";
import type { Catalogue } from "./find-command.ts";
import { FLOW_COMMANDS } from "./flow-commands.ts";
import { SETUP_COMMANDS } from "./setup-commands.ts";

/** The groups of `lazarus --help`, in order. */
export const GROUPS = {
  agents: "Run agents and revive them",
  cells: "Cells and heartbeats",
  checkpoints: "Checkpoints: save, restore, undo",
  flows: "Flows: restart-safe lists of steps",
  runs: "Durable runs of the TypeScript library",
  setup: "Setup and help",
} as const;

/** A name of two words is a sub-command: `job beat`. */
export const CATALOGUE: Catalogue<keyof typeof GROUPS> = {
  ...AGENT_COMMANDS,
  init: {
    group: "cells",
    summary: "create the cell of a mission",
    load: () => import("./commands/cells/init.ts"),
  },
  protect: {
    group: "cells",
    summary: "save a directory in place as a mission's worktree",
    load: () => import("./commands/cells/protect.ts"),
  },
  release: {
    group: "cells",
    rare: true,
    summary: "end the protection of a directory; its checkpoints stay",
    load: () => import("./commands/cells/release.ts"),
  },
  heartbeat: {
    group: "cells",
    summary: "record that a mission is alive",
    load: async () => heartbeat,
  },
  scan: {
    group: "cells",
    summary: "show the state of every cell",
    load: () => import("./commands/cells/scan.ts"),
  },
  "job beat": { group: "cells", summary: "record that a job ran", load: async () => jobBeat },
  "job check": {
    group: "cells",
    summary: "list jobs that have not run on time",
    load: () => import("./commands/cells/job-check.ts"),
  },
  checkpoint: {
    group: "checkpoints",
    summary: "save a cell: files, conversation, flows, runs",
    load: () => import("./commands/checkpoints/checkpoint.ts"),
  },
  checkpoints: {
    group: "checkpoints",
    summary: "list the checkpoints of a mission",
    load: () => import("./commands/checkpoints/checkpoints.ts"),
  },
  show: {
    group: "checkpoints",
    summary: "show one checkpoint in detail",
    load: () => import("./commands/checkpoints/show.ts"),
  },
  diff: {
    group: "checkpoints",
    summary: "compare checkpoints, or a checkpoint with now",
    load: () => import("./commands/checkpoints/diff.ts"),
  },
  ls: {
    group: "checkpoints",
    rare: true,
    summary: "list the files of a checkpoint",
    load: () => import("./commands/inspect/ls.ts"),
  },
  cat: {
    group: "checkpoints",
    rare: true,
    summary: "print a file as it was in a checkpoint",
    load: () => import("./commands/inspect/cat.ts"),
  },
  versions: {
    group: "checkpoints",
    rare: true,
    summary: "list the versions of a file in all checkpoints",
    load: () => import("./commands/inspect/versions.ts"),
  },
  find: {
    group: "checkpoints",
    rare: true,
    summary: "find files by name in all checkpoints, also deleted ones",
    load: () => import("./commands/inspect/find.ts"),
  },
  grep: {
    group: "checkpoints",
    rare: true,
    summary: "search the text of files in all checkpoints",
    load: () => import("./commands/inspect/grep.ts"),
  },
  conversation: {
    group: "checkpoints",
    summary: "print what an agent and its model said",
    load: () => import("./commands/checkpoints/conversation.ts"),
  },
  restore: {
    group: "checkpoints",
    summary: "restore a cell to a checkpoint",
    load: () => import("./commands/checkpoints/restore.ts"),
  },
  undo: {
    group: "checkpoints",
    summary: "undo the last restore",
    load: () => import("./commands/checkpoints/undo.ts"),
  },
  fork: {
    group: "checkpoints",
    summary: "create a mission from another's checkpoint",
    load: () => import("./commands/checkpoints/fork.ts"),
  },
  drill: {
    group: "checkpoints",
    rare: true,
    summary: "test-restore a checkpoint into a scratch directory",
    load: () => import("./commands/checkpoints/drill.ts"),
  },
  verify: {
    group: "checkpoints",
    summary: "check the integrity of checkpoints",
    load: () => import("./commands/checkpoints/verify.ts"),
  },
  pin: {
    group: "checkpoints",
    rare: true,
    summary: "protect a checkpoint from pruning",
    load: () => import("./commands/checkpoints/pin.ts"),
  },
  unpin: {
    group: "checkpoints",
    rare: true,
    summary: "allow pruning a pinned checkpoint again",
    load: () => import("./commands/checkpoints/unpin.ts"),
  },
  prune: {
    group: "checkpoints",
    summary: "remove old checkpoints, by the retention policy",
    load: () => import("./commands/checkpoints/prune.ts"),
  },
  export: {
    group: "checkpoints",
    rare: true,
    summary: "write a checkpoint as a .tar.gz file",
    load: () => import("./commands/checkpoints/export.ts"),
  },
  import: {
    group: "checkpoints",
    rare: true,
    summary: "create a cell from an archive or an OCI layout",
    load: () => import("./commands/checkpoints/import.ts"),
  },
  "registry rebuild": {
    group: "checkpoints",
    rare: true,
    summary: "rebuild the registry from the vaults",
    load: () => import("./commands/checkpoints/registry-rebuild.ts"),
  },
  ...FLOW_COMMANDS,
  runs: { group: "runs", summary: "list durable runs", load: () => import("./commands/runs/list.ts") },
  "runs show": {
    group: "runs",
    summary: "show one run: transcript, steps, effects",
    load: () => import("./commands/runs/show.ts"),
  },
  "runs approve": {
    group: "runs",
    summary: "answer a request for approval",
    load: () => import("./commands/runs/approve.ts"),
  },
  "runs send": {
    group: "runs",
    summary: "send a message to a run",
    load: () => import("./commands/runs/send.ts"),
  },
  "runs cancel": {
    group: "runs",
    summary: "end a run and its child runs",
    load: () => import("./commands/runs/cancel.ts"),
  },
  "runs wake": {
    group: "runs",
    summary: "end the sleep or wait of a run now",
    load: () => import("./commands/runs/wake.ts"),
  },
  "runs queue": {
    group: "runs",
    summary: "show queues, or set the limits of one",
    load: () => import("./commands/runs/queue.ts"),
  },
  "runs resolve": {
    group: "runs",
    summary: "record the outcome of an effect that is unknown",
    load: () => import("./commands/runs/resolve.ts"),
  },
  "runs retry": {
    group: "runs",
    summary: "allow a run that kept crashing to continue",
    load: () => import("./commands/runs/retry.ts"),
  },
  "runs fork": {
    group: "runs",
    summary: "create a run from a step of another",
    load: () => import("./commands/runs/fork.ts"),
  },
  "runs rerun": {
    group: "runs",
    summary: "run the input of a run again",
    load: () => import("./commands/runs/rerun.ts"),
  },
  "runs check": {
    group: "runs",
    summary: "check that open runs can continue with new agent code",
    load: () => import("./commands/runs/check.ts"),
  },
  "runs prune": {
    group: "runs",
    summary: "remove runs that ended long ago",
    load: () => import("./commands/runs/prune.ts"),
  },
  events: {
    group: "agents",
    rare: true,
    summary: "show the event log",
    load: () => import("./commands/setup/events.ts"),
  },
  ...SETUP_COMMANDS,
  mcp: {
    group: "setup",
    rare: true,
    summary: "serve checkpoints and flows to an agent over MCP",
    load: async () => {
      const { createMcpCommand } = await import("./commands/setup/mcp.ts");
      return { command: createMcpCommand(CATALOGUE) };
    },
  },
  complete: {
    group: "setup",
    summary: "print completion candidates",
    hidden: true,
    load: async () => {
      const { createCompleteCommand } = await import("./commands/setup/complete.ts");
      return { command: createCompleteCommand(CATALOGUE) };
    },
  },
};
