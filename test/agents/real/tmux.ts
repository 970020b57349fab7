// A tmux server of its own with the plugin tmux-resurrect, for an agent in a pane.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processTree } from "../../../src/pit/processes/process-table.ts";
import { shellWord } from "../../../src/platform/shell-word.ts";
import { killIfRunning } from "../../pit/pit-world.ts";
import type { RealWorld } from "./real-world.ts";

export interface Tmux {
  /** Types a command into the first pane. */
  start(command: readonly string[]): Promise<void>;
  /** What the plugin does every 15 minutes with tmux-continuum, or when the user presses its key. */
  save(): void;
  /** Kills the server and everything in it. */
  kill(): void;
  /** A new server, in which the plugin restores what it saved. */
  restore(): Promise<void>;
}

/** `plugin` is a checkout of tmux-resurrect. */
export function openTmux(real: RealWorld, plugin: string, env: Readonly<Record<string, string>>): Tmux {
  const socket = join(real.world.directory, "tmux");
  const tmux = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync("tmux", ["-S", socket, "-f", "/dev/null", ...args], {
      cwd: real.work,
      env: { ...env, SHELL: "/bin/sh", TERM: "xterm-256color" },
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`tmux ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  const open = async () => {
    tmux("new-session", "-d", "-s", "work", "-x", "200", "-y", "50", "-c", real.work, "exec /bin/sh");
    // A login shell would change PATH.
    tmux("set-option", "-g", "default-command", "exec /bin/sh");
    tmux("set-option", "-g", "@resurrect-dir", join(real.world.directory, "resurrect"));
    // Otherwise it restores only editors and the like.
    tmux("set-option", "-g", "@resurrect-processes", ":all:");
    tmux("run-shell", join(plugin, "resurrect.tmux"));
    while (tmux("capture-pane", "-p", "-t", "work") === "") await sleep(20);
  };
  return {
    async start(command) {
      await open();
      tmux("send-keys", "-t", "work", command.map(shellWord).join(" "), "Enter");
    },
    save: () => void tmux("run-shell", `${join(plugin, "scripts", "save.sh")} quiet`),
    kill() {
      for (const pid of processTree(Number(tmux("display-message", "-p", "#{pid}")))) killIfRunning(pid);
      rmSync(socket, { force: true });
    },
    async restore() {
      await open();
      tmux("run-shell", join(plugin, "scripts", "restore.sh"));
    },
  };
}
