// The part of the table of commands that is about flows; see catalogue.ts.
import type { Catalogue } from "./find-command.ts";

export const FLOW_COMMANDS: Catalogue<"flows"> = {
  "flow start": {
    group: "flows",
    summary: "create a flow with its steps",
    load: () => import("./commands/flows/start.ts"),
  },
  "flow update": {
    group: "flows",
    summary: "record progress of a flow",
    load: () => import("./commands/flows/update.ts"),
  },
  "flow resume": {
    group: "flows",
    summary: "claim an unfinished flow and continue it",
    load: () => import("./commands/flows/resume.ts"),
  },
  "flow complete": {
    group: "flows",
    summary: "mark a flow as done",
    load: () => import("./commands/flows/complete.ts"),
  },
  "flow fail": {
    group: "flows",
    summary: "mark a flow as failed",
    load: () => import("./commands/flows/fail.ts"),
  },
  "flow block": {
    group: "flows",
    summary: "mark a flow as blocked",
    load: () => import("./commands/flows/block.ts"),
  },
  "flow release": {
    group: "flows",
    summary: "release the resume lock of a flow",
    load: () => import("./commands/flows/release.ts"),
  },
  "flow list": {
    group: "flows",
    summary: "list flows",
    load: () => import("./commands/flows/list.ts"),
  },
  "flow show": {
    group: "flows",
    summary: "show one flow",
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
    summary: "find stale flows and report them",
    load: () => import("./commands/flows/selfcheck.ts"),
  },
  "flow prune": {
    group: "flows",
    summary: "remove expired and old flows",
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
    summary: "install an AGENTS.md section, self-check and skill",
    load: () => import("./commands/flows/install.ts"),
  },
  "flow uninstall": {
    group: "flows",
    summary: "remove what flow install added",
    load: () => import("./commands/flows/uninstall.ts"),
  },
};
