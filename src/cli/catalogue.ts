// The table of commands: name, group, one line about each, and how to load it. Only the command that runs is loaded,
// but for the two that agents and cron jobs call all day: they come with the core, which saves a file each (0.5 ms).

import * as heartbeat from "./commands/cells/heartbeat.ts";
import * as jobBeat from "./commands/cells/job-beat.ts";
import type { Catalogue } from "./find-command.ts";

/** By what a person wants to do. */
export const GROUPS = {
  agents: "Keep an agent alive",
  cells: "Know that it lives",
  checkpoints: "Save its work and go back",
  flows: "Work through steps, each one once",
  runs: "Look into durable runs",
  setup: "Try, set up, get help",
} as const;

/** A name of two words is a sub-command: `job beat`. */
export const CATALOGUE: Catalogue<keyof typeof GROUPS> = {
  run: {
    group: "agents",
    summary: "start an agent in a cell, watched over",
    load: () => import("./commands/agents/run.ts"),
  },
  status: {
    group: "agents",
    summary: "what every agent is doing",
    load: () => import("./commands/agents/status.ts"),
  },
  why: {
    group: "agents",
    summary: "why an agent ended, and what was decided",
    load: () => import("./commands/agents/why.ts"),
  },
  revive: {
    group: "agents",
    summary: "bring an agent back",
    load: () => import("./commands/agents/revive.ts"),
  },
  logs: {
    group: "agents",
    summary: "what an agent prints",
    load: () => import("./commands/agents/logs.ts"),
  },
  attach: {
    group: "agents",
    rare: true,
    summary: "stay beside a running agent",
    load: () => import("./commands/agents/attach.ts"),
  },
  stop: {
    group: "agents",
    summary: "end an agent and leave it ended",
    load: () => import("./commands/agents/stop.ts"),
  },
  pause: {
    group: "agents",
    rare: true,
    summary: "hold an agent where it is",
    load: () => import("./commands/agents/pause.ts"),
  },
  rest: {
    group: "agents",
    rare: true,
    summary: "ask an agent to end; it comes back with revive",
    load: () => import("./commands/agents/rest.ts"),
  },
  pit: {
    group: "agents",
    summary: "the daemon that notices deaths and revives",
    load: () => import("./commands/agents/pit.ts"),
  },
  "pit install": {
    group: "agents",
    rare: true,
    summary: "the pit as a service: systemd, launchd, cron",
    load: () => import("./commands/agents/pit-install.ts"),
  },
  "pit uninstall": {
    group: "agents",
    rare: true,
    summary: "take that away again",
    load: () => import("./commands/agents/pit-uninstall.ts"),
  },
  init: {
    group: "cells",
    summary: "make a cell for a mission",
    load: () => import("./commands/cells/init.ts"),
  },
  heartbeat: {
    group: "cells",
    summary: "say that a mission is alive",
    load: async () => heartbeat,
  },
  scan: { group: "cells", summary: "state of every cell", load: () => import("./commands/cells/scan.ts") },
  "job beat": { group: "cells", summary: "say that a job ran", load: async () => jobBeat },
  "job check": {
    group: "cells",
    summary: "list jobs whose pulse is stale",
    load: () => import("./commands/cells/job-check.ts"),
  },
  checkpoint: {
    group: "checkpoints",
    summary: "save a cell: files, git commit, flows and runs",
    load: () => import("./commands/checkpoints/checkpoint.ts"),
  },
  checkpoints: {
    group: "checkpoints",
    summary: "list the checkpoints of a mission",
    load: () => import("./commands/checkpoints/checkpoints.ts"),
  },
  show: {
    group: "checkpoints",
    summary: "everything about one checkpoint",
    load: () => import("./commands/checkpoints/show.ts"),
  },
  diff: {
    group: "checkpoints",
    summary: "what differs between checkpoints, or from now",
    load: () => import("./commands/checkpoints/diff.ts"),
  },
  restore: {
    group: "checkpoints",
    summary: "put a cell back to a checkpoint",
    load: () => import("./commands/checkpoints/restore.ts"),
  },
  undo: {
    group: "checkpoints",
    summary: "take the last restore back",
    load: () => import("./commands/checkpoints/undo.ts"),
  },
  fork: {
    group: "checkpoints",
    summary: "a new mission from a checkpoint of another",
    load: () => import("./commands/checkpoints/fork.ts"),
  },
  drill: {
    group: "checkpoints",
    rare: true,
    summary: "prove that a checkpoint can be restored",
    load: () => import("./commands/checkpoints/drill.ts"),
  },
  verify: {
    group: "checkpoints",
    summary: "check that checkpoints can be restored",
    load: () => import("./commands/checkpoints/verify.ts"),
  },
  pin: {
    group: "checkpoints",
    rare: true,
    summary: "keep a checkpoint from being pruned",
    load: () => import("./commands/checkpoints/pin.ts"),
  },
  unpin: {
    group: "checkpoints",
    rare: true,
    summary: "let the retention policy decide again",
    load: () => import("./commands/checkpoints/unpin.ts"),
  },
  prune: {
    group: "checkpoints",
    summary: "remove checkpoints by the retention policy",
    load: () => import("./commands/checkpoints/prune.ts"),
  },
  export: {
    group: "checkpoints",
    rare: true,
    summary: "one checkpoint as a plain .tar.gz",
    load: () => import("./commands/checkpoints/export.ts"),
  },
  import: {
    group: "checkpoints",
    rare: true,
    summary: "a new cell from an archive or an OCI layout",
    load: () => import("./commands/checkpoints/import.ts"),
  },
  "registry rebuild": {
    group: "checkpoints",
    rare: true,
    summary: "fill the registry again from the vaults",
    load: () => import("./commands/checkpoints/registry-rebuild.ts"),
  },
  "flow start": {
    group: "flows",
    summary: "write down work before it begins",
    load: () => import("./commands/flows/start.ts"),
  },
  "flow update": {
    group: "flows",
    summary: "say how far the work is",
    load: () => import("./commands/flows/update.ts"),
  },
  "flow resume": {
    group: "flows",
    summary: "take up unfinished work",
    load: () => import("./commands/flows/resume.ts"),
  },
  "flow complete": {
    group: "flows",
    summary: "the work is done",
    load: () => import("./commands/flows/complete.ts"),
  },
  "flow fail": {
    group: "flows",
    summary: "the work failed",
    load: () => import("./commands/flows/fail.ts"),
  },
  "flow block": {
    group: "flows",
    summary: "the work waits for something",
    load: () => import("./commands/flows/block.ts"),
  },
  "flow release": {
    group: "flows",
    summary: "let go of the resume lock",
    load: () => import("./commands/flows/release.ts"),
  },
  "flow list": {
    group: "flows",
    summary: "all workflows",
    load: () => import("./commands/flows/list.ts"),
  },
  "flow show": {
    group: "flows",
    summary: "one workflow",
    load: () => import("./commands/flows/show.ts"),
  },
  "flow once": {
    group: "flows",
    summary: "run a command at most once",
    load: () => import("./commands/flows/once.ts"),
  },
  "flow exec": {
    group: "flows",
    summary: "run a list of steps, each at most once",
    load: () => import("./commands/flows/exec.ts"),
  },
  "flow selfcheck": {
    group: "flows",
    summary: "find work that has gone stale",
    load: () => import("./commands/flows/selfcheck.ts"),
  },
  "flow prune": {
    group: "flows",
    summary: "remove expired and old workflows",
    load: () => import("./commands/flows/prune.ts"),
  },
  "flow accept-edit": {
    group: "flows",
    summary: "accept a workflow file that was edited by hand",
    load: () => import("./commands/flows/accept-edit.ts"),
  },
  // The former name of `flow accept-edit`, kept for scripts.
  "flow mend": {
    group: "flows",
    hidden: true,
    summary: "accept a workflow file that was edited by hand",
    load: () => import("./commands/flows/accept-edit.ts"),
  },
  "flow install": {
    group: "flows",
    summary: "AGENTS.md section, scheduled self-check, skill",
    load: () => import("./commands/flows/install.ts"),
  },
  "flow uninstall": {
    group: "flows",
    summary: "take those away again",
    load: () => import("./commands/flows/uninstall.ts"),
  },
  runs: { group: "runs", summary: "list durable runs", load: () => import("./commands/runs/list.ts") },
  "runs show": {
    group: "runs",
    summary: "one run: transcript, steps, effects",
    load: () => import("./commands/runs/show.ts"),
  },
  "runs resolve": {
    group: "runs",
    summary: "say what became of an unknown effect",
    load: () => import("./commands/runs/resolve.ts"),
  },
  "runs retry": {
    group: "runs",
    summary: "another chance for a run that kept dying",
    load: () => import("./commands/runs/retry.ts"),
  },
  "runs fork": {
    group: "runs",
    summary: "a new run from a step of another",
    load: () => import("./commands/runs/fork.ts"),
  },
  "runs prune": {
    group: "runs",
    summary: "take away runs that ended long ago",
    load: () => import("./commands/runs/prune.ts"),
  },
  events: {
    group: "agents",
    summary: "the log of what happened",
    load: () => import("./commands/setup/events.ts"),
  },
  demo: {
    group: "setup",
    summary: "a guided try-out in a temporary home",
    load: () => import("./commands/setup/demo.ts"),
  },
  doctor: {
    group: "setup",
    summary: "check that this machine can keep the promises",
    load: () => import("./commands/setup/doctor.ts"),
  },
  config: {
    group: "setup",
    summary: "effective settings and where each came from",
    load: () => import("./commands/setup/config.ts"),
  },
  "gitea install-template": {
    group: "setup",
    rare: true,
    summary: "the issue form of a mission proposal",
    load: () => import("./commands/setup/gitea-install-template.ts"),
  },
  completion: {
    group: "setup",
    rare: true,
    summary: "completions for bash, zsh or fish",
    load: () => import("./commands/setup/completion.ts"),
  },
  complete: {
    group: "setup",
    summary: "candidates for a shell",
    hidden: true,
    load: async () => {
      const { createCompleteCommand } = await import("./commands/setup/complete.ts");
      return { command: createCompleteCommand(CATALOGUE) };
    },
  },
};
