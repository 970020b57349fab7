// The table of commands: group, name, one-line summary and loader. Only the command that runs is loaded, except for the
// two that agents and cron jobs call all day: they are part of the core chunk, which saves loading a file (0.5 ms).
import * as heartbeat from "./commands/cells/heartbeat.ts";
import * as jobBeat from "./commands/cells/job-beat.ts";
import type { Catalogue, CatalogueEntry } from "./find-command.ts";

type Row = readonly [summary: string, load: CatalogueEntry["load"]];
type Rows = Readonly<Record<string, Row>>;

interface Group {
  /** Its heading in `lazarus --help`. */
  readonly title: string;
  readonly commands: Rows;
  /** Listed by name only. */
  readonly also?: Rows;
  readonly hidden?: Rows;
}

/**
 * Each agent CLI is also a command: `lazarus claude …`. A test compares the names with those of the adapters, which are not
 * loaded here. Claude stands for all of them in the overview.
 */
const OTHER_AGENTS = ["codex", "gemini", "opencode", "pi", "qwen", "copilot", "cline", "openclaw"];
export const AGENT_NAMES: readonly string[] = ["claude", ...OTHER_AGENTS];

function agentRow(name: string): Row {
  const load = async () => {
    const { createAgentCommand } = await import("./commands/agents/agent.ts");
    return { command: createAgentCommand(name) };
  };
  return [`run ${name} in this directory, protected`, load];
}

/** The groups of `lazarus --help`, in order. A name of two words is a sub-command: `job beat`. */
const GROUPS: Readonly<Record<string, Group>> = {
  agents: {
    title: "Run agents and revive them",
    commands: {
      run: ["start an agent in a cell", () => import("./commands/agents/run.ts")],
      claude: agentRow("claude"),
      status: ["show what every agent is doing", () => import("./commands/agents/status.ts")],
      why: ["explain why an agent ended and what happens next", () => import("./commands/agents/why.ts")],
      revive: ["start an agent again where it stopped", () => import("./commands/agents/revive.ts")],
      logs: ["print the output of an agent", () => import("./commands/agents/logs.ts")],
      stop: ["stop an agent; it is not revived", () => import("./commands/agents/stop.ts")],
      pit: ["run the daemon that watches and revives agents", () => import("./commands/agents/pit.ts")],
    },
    also: {
      ...Object.fromEntries(OTHER_AGENTS.map((name) => [name, agentRow(name)])),
      set: [
        "change what you granted a mission: revive mode, limits, environment",
        () => import("./commands/agents/set.ts"),
      ],
      attach: ["attach to a running agent", () => import("./commands/agents/attach.ts")],
      pause: ["suspend an agent until it is revived", () => import("./commands/agents/pause.ts")],
      rest: ["ask an agent to exit until it is revived", () => import("./commands/agents/rest.ts")],
      "pit install": [
        "run the pit as a service (systemd, launchd, cron)",
        () => import("./commands/agents/pit-install.ts"),
      ],
      "pit uninstall": ["remove the service of the pit", () => import("./commands/agents/pit-uninstall.ts")],
      watch: ["watch an agent that Lazarus did not start", () => import("./commands/agents/watch.ts")],
      hook: ["receive what an agent's hooks report", () => import("./commands/agents/hook.ts")],
      effects: [
        "list what a mission did to the outside world",
        () => import("./commands/inspect/effects.ts"),
      ],
      events: ["show the event log", () => import("./commands/setup/events.ts")],
    },
    hidden: {
      "watch-wait": ["wait for a watched process or unit", () => import("./commands/agents/watch-wait.ts")],
    },
  },
  cells: {
    title: "Cells and heartbeats",
    commands: {
      init: ["create the cell of a mission", () => import("./commands/cells/init.ts")],
      protect: [
        "protect an existing directory with checkpoints",
        () => import("./commands/cells/protect.ts"),
      ],
      heartbeat: ["record that a mission is alive", async () => heartbeat],
      scan: ["show the state of every cell", () => import("./commands/cells/scan.ts")],
      "job beat": ["record that a job ran", async () => jobBeat],
      "job check": ["list jobs that have not run on time", () => import("./commands/cells/job-check.ts")],
    },
    also: {
      release: [
        "end the protection of a directory; its checkpoints stay",
        () => import("./commands/cells/release.ts"),
      ],
      delete: [
        "delete a mission: its cell, its checkpoints, everything",
        () => import("./commands/cells/delete.ts"),
      ],
    },
  },
  checkpoints: {
    title: "Checkpoints: save, restore, undo",
    commands: {
      checkpoint: [
        "save a cell: files, conversation, flows, runs",
        () => import("./commands/checkpoints/checkpoint.ts"),
      ],
      checkpoints: [
        "list the checkpoints of a mission",
        () => import("./commands/checkpoints/checkpoints.ts"),
      ],
      show: ["show one checkpoint in detail", () => import("./commands/checkpoints/show.ts")],
      diff: ["compare checkpoints, or a checkpoint with now", () => import("./commands/checkpoints/diff.ts")],
      conversation: [
        "print what an agent and its model said",
        () => import("./commands/checkpoints/conversation.ts"),
      ],
      restore: ["restore a cell to a checkpoint", () => import("./commands/checkpoints/restore.ts")],
      undo: ["undo the last restore", () => import("./commands/checkpoints/undo.ts")],
      fork: ["create a mission from another's checkpoint", () => import("./commands/checkpoints/fork.ts")],
      verify: ["check the integrity of checkpoints", () => import("./commands/checkpoints/verify.ts")],
      prune: [
        "remove old checkpoints, by the retention policy",
        () => import("./commands/checkpoints/prune.ts"),
      ],
    },
    also: {
      ls: ["list the files of a checkpoint", () => import("./commands/inspect/ls.ts")],
      cat: ["print a file as it was in a checkpoint", () => import("./commands/inspect/cat.ts")],
      versions: [
        "list the versions of a file in all checkpoints",
        () => import("./commands/inspect/versions.ts"),
      ],
      find: [
        "find files by name in all checkpoints, including deleted ones",
        () => import("./commands/inspect/find.ts"),
      ],
      grep: ["search the text of files in all checkpoints", () => import("./commands/inspect/grep.ts")],
      drill: [
        "test-restore a checkpoint into a scratch directory",
        () => import("./commands/checkpoints/drill.ts"),
      ],
      pin: ["protect a checkpoint from pruning", () => import("./commands/checkpoints/pin.ts")],
      unpin: ["allow pruning a pinned checkpoint again", () => import("./commands/checkpoints/unpin.ts")],
      export: ["write a checkpoint as a .tar.gz file", () => import("./commands/checkpoints/export.ts")],
      import: [
        "create a cell from an archive or an OCI layout",
        () => import("./commands/checkpoints/import.ts"),
      ],
      "registry rebuild": [
        "rebuild the registry from the vaults",
        () => import("./commands/checkpoints/registry-rebuild.ts"),
      ],
    },
  },
  flows: {
    title: "Flows: restart-safe lists of steps",
    commands: {
      "flow start": ["create a flow with its steps", () => import("./commands/flows/start.ts")],
      "flow update": ["record progress of a flow", () => import("./commands/flows/update.ts")],
      "flow resume": ["claim an unfinished flow and continue it", () => import("./commands/flows/resume.ts")],
      "flow complete": ["mark a flow as done", () => import("./commands/flows/complete.ts")],
      "flow fail": ["mark a flow as failed", () => import("./commands/flows/fail.ts")],
      "flow block": ["mark a flow as blocked", () => import("./commands/flows/block.ts")],
      "flow release": ["release the resume lock of a flow", () => import("./commands/flows/release.ts")],
      "flow list": ["list flows", () => import("./commands/flows/list.ts")],
      "flow show": ["show one flow", () => import("./commands/flows/show.ts")],
      "flow once": ["run a command at most once", () => import("./commands/flows/once.ts")],
      "flow exec": ["run a list of steps, each at most once", () => import("./commands/flows/exec.ts")],
      "flow selfcheck": ["find stale flows and report them", () => import("./commands/flows/selfcheck.ts")],
      "flow prune": ["remove expired and old flows", () => import("./commands/flows/prune.ts")],
      "flow accept-edit": [
        "accept a workflow file that was edited by hand",
        () => import("./commands/flows/accept-edit.ts"),
      ],
      "flow install": [
        "install an AGENTS.md section, self-check and skill",
        () => import("./commands/flows/install.ts"),
      ],
      "flow uninstall": ["remove what flow install added", () => import("./commands/flows/uninstall.ts")],
    },
    hidden: {
      // The former name of `flow accept-edit`, kept for scripts.
      "flow mend": [
        "accept a workflow file that was edited by hand",
        () => import("./commands/flows/accept-edit.ts"),
      ],
    },
  },
  runs: {
    title: "Durable runs of the TypeScript library",
    commands: {
      runs: ["list durable runs", () => import("./commands/runs/list.ts")],
      "runs show": ["show one run: transcript, steps, effects", () => import("./commands/runs/show.ts")],
      "runs approve": ["answer a request for approval", () => import("./commands/runs/approve.ts")],
      "runs send": ["send a message to a run", () => import("./commands/runs/send.ts")],
      "runs cancel": ["end a run and its child runs", () => import("./commands/runs/cancel.ts")],
      "runs wake": ["end the sleep or wait of a run now", () => import("./commands/runs/wake.ts")],
      "runs queue": ["show queues, or set the limits of one", () => import("./commands/runs/queue.ts")],
      "runs resolve": [
        "record the outcome of an effect that is unknown",
        () => import("./commands/runs/resolve.ts"),
      ],
      "runs retry": ["allow a run that kept crashing to continue", () => import("./commands/runs/retry.ts")],
      "runs fork": ["create a run from a step of another", () => import("./commands/runs/fork.ts")],
      "runs rerun": ["run the input of a run again", () => import("./commands/runs/rerun.ts")],
      "runs check": [
        "check that open runs can continue with new agent code",
        () => import("./commands/runs/check.ts"),
      ],
      "runs prune": ["remove runs that ended long ago", () => import("./commands/runs/prune.ts")],
    },
  },
  setup: {
    title: "Setup and help",
    commands: {
      demo: ["watch Lazarus revive an agent, in a temporary home", () => import("./commands/setup/demo.ts")],
      doctor: ["check that this machine has what Lazarus needs", () => import("./commands/setup/doctor.ts")],
      config: ["show all settings and where each comes from", () => import("./commands/setup/config.ts")],
      install: [
        "add hooks to an agent's own config, or the skill",
        () => import("./commands/setup/install.ts"),
      ],
      "token create": ["create a token for the HTTP API", () => import("./commands/setup/token-create.ts")],
      "token list": ["list the tokens of the HTTP API", () => import("./commands/setup/token-list.ts")],
      "token revoke": ["revoke a token of the HTTP API", () => import("./commands/setup/token-revoke.ts")],
    },
    also: {
      uninstall: ["remove what install added", () => import("./commands/setup/uninstall.ts")],
      "config trust": [
        "accept the lazarus.json of a shared directory",
        () => import("./commands/setup/config-trust.ts"),
      ],
      "gitea install-template": [
        "write the issue form for mission proposals",
        () => import("./commands/setup/gitea-install-template.ts"),
      ],
      "shell-init": [
        "print shell functions that protect every agent you start",
        () => import("./commands/setup/shell-init.ts"),
      ],
      completion: [
        "print a completion script for bash, zsh or fish",
        () => import("./commands/setup/completion.ts"),
      ],
      mcp: [
        "serve checkpoints and flows to an agent over MCP",
        async () => {
          const { createMcpCommand } = await import("./commands/setup/mcp.ts");
          return { command: createMcpCommand(CATALOGUE) };
        },
      ],
    },
    hidden: {
      complete: [
        "print completion candidates",
        async () => {
          const { createCompleteCommand } = await import("./commands/setup/complete.ts");
          return { command: createCompleteCommand(CATALOGUE) };
        },
      ],
    },
  },
};

/** The groups' names and titles. */
export const TITLES: readonly (readonly [group: string, title: string])[] = Object.entries(GROUPS).map(
  ([group, { title }]) => [group, title],
);

export const CATALOGUE: Catalogue = Object.fromEntries(
  Object.entries(GROUPS).flatMap(([group, { commands, also, hidden }]) => {
    const entries = (rows: Rows | undefined, marks: Partial<CatalogueEntry>) =>
      Object.entries(rows ?? {}).map(
        ([name, [summary, load]]) => [name, { group, summary, load, ...marks }] as const,
      );
    return [...entries(commands, {}), ...entries(also, { rare: true }), ...entries(hidden, { hidden: true })];
  }),
);
