// The setup commands of the catalogue.
import type { Catalogue } from "./find-command.ts";

export const SETUP_COMMANDS: Catalogue<"setup"> = {
  demo: {
    group: "setup",
    summary: "watch Lazarus revive an agent, in a temporary home",
    load: () => import("./commands/setup/demo.ts"),
  },
  doctor: {
    group: "setup",
    summary: "check that this machine has what Lazarus needs",
    load: () => import("./commands/setup/doctor.ts"),
  },
  config: {
    group: "setup",
    summary: "show all settings and where each comes from",
    load: () => import("./commands/setup/config.ts"),
  },
  install: {
    group: "setup",
    summary: "add hooks to an agent's own config, or the skill",
    load: () => import("./commands/setup/install.ts"),
  },
  uninstall: {
    group: "setup",
    rare: true,
    summary: "remove what install added",
    load: () => import("./commands/setup/uninstall.ts"),
  },
  "token create": {
    group: "setup",
    summary: "create a token for the HTTP API",
    load: () => import("./commands/setup/token-create.ts"),
  },
  "token list": {
    group: "setup",
    summary: "list the tokens of the HTTP API",
    load: () => import("./commands/setup/token-list.ts"),
  },
  "token revoke": {
    group: "setup",
    summary: "revoke a token of the HTTP API",
    load: () => import("./commands/setup/token-revoke.ts"),
  },
  "config trust": {
    group: "setup",
    rare: true,
    summary: "accept the lazarus.json of a shared directory",
    load: () => import("./commands/setup/config-trust.ts"),
  },
  "gitea install-template": {
    group: "setup",
    rare: true,
    summary: "write the issue form for mission proposals",
    load: () => import("./commands/setup/gitea-install-template.ts"),
  },
  "shell-init": {
    group: "setup",
    rare: true,
    summary: "print shell functions that protect every agent you start",
    load: () => import("./commands/setup/shell-init.ts"),
  },
  completion: {
    group: "setup",
    rare: true,
    summary: "print a completion script for bash, zsh or fish",
    load: () => import("./commands/setup/completion.ts"),
  },
};
