// The agent commands of the catalogue. Each agent CLI is also a command (`lazarus claude …`); a test compares their names
// with those of the adapters, which are not loaded here.
import type { Catalogue } from "./find-command.ts";

export const AGENT_NAMES: readonly string[] = [
  "claude",
  "codex",
  "gemini",
  "opencode",
  "pi",
  "qwen",
  "copilot",
  "cline",
  "openclaw",
];

function agentCommand(name: string): Catalogue<"agents">[string] {
  return {
    group: "agents",
    // One stands for all of them in the overview.
    rare: name !== "claude",
    summary: `run ${name} in this directory, protected`,
    load: async () => {
      const { createAgentCommand } = await import("./commands/agents/agent.ts");
      return { command: createAgentCommand(name) };
    },
  };
}

export const AGENT_COMMANDS: Catalogue<"agents"> = {
  run: {
    group: "agents",
    summary: "start an agent in a cell",
    load: () => import("./commands/agents/run.ts"),
  },
  ...Object.fromEntries(AGENT_NAMES.map((name) => [name, agentCommand(name)])),
  status: {
    group: "agents",
    summary: "show what every agent is doing",
    load: () => import("./commands/agents/status.ts"),
  },
  why: {
    group: "agents",
    summary: "explain why an agent ended and what happens next",
    load: () => import("./commands/agents/why.ts"),
  },
  revive: {
    group: "agents",
    summary: "start an agent again where it stopped",
    load: () => import("./commands/agents/revive.ts"),
  },
  set: {
    group: "agents",
    rare: true,
    summary: "change what you granted a mission: revive mode, limits, environment",
    load: () => import("./commands/agents/set.ts"),
  },
  logs: {
    group: "agents",
    summary: "print the output of an agent",
    load: () => import("./commands/agents/logs.ts"),
  },
  attach: {
    group: "agents",
    rare: true,
    summary: "attach to a running agent",
    load: () => import("./commands/agents/attach.ts"),
  },
  stop: {
    group: "agents",
    summary: "stop an agent; it is not revived",
    load: () => import("./commands/agents/stop.ts"),
  },
  pause: {
    group: "agents",
    rare: true,
    summary: "suspend an agent until it is revived",
    load: () => import("./commands/agents/pause.ts"),
  },
  rest: {
    group: "agents",
    rare: true,
    summary: "ask an agent to exit until it is revived",
    load: () => import("./commands/agents/rest.ts"),
  },
  pit: {
    group: "agents",
    summary: "run the daemon that watches and revives agents",
    load: () => import("./commands/agents/pit.ts"),
  },
  "pit install": {
    group: "agents",
    rare: true,
    summary: "run the pit as a service (systemd, launchd, cron)",
    load: () => import("./commands/agents/pit-install.ts"),
  },
  "pit uninstall": {
    group: "agents",
    rare: true,
    summary: "remove the service of the pit",
    load: () => import("./commands/agents/pit-uninstall.ts"),
  },
  watch: {
    group: "agents",
    rare: true,
    summary: "watch an agent that Lazarus did not start",
    load: () => import("./commands/agents/watch.ts"),
  },
  "watch-wait": {
    group: "agents",
    hidden: true,
    summary: "wait for a watched process or unit",
    load: () => import("./commands/agents/watch-wait.ts"),
  },
  hook: {
    group: "agents",
    rare: true,
    summary: "receive what an agent's hooks report",
    load: () => import("./commands/agents/hook.ts"),
  },
  effects: {
    group: "agents",
    rare: true,
    summary: "list what a mission did to the outside world",
    load: () => import("./commands/inspect/effects.ts"),
  },
};
