// A service as systemd unit files: a notify daemon, or a oneshot service with its timer. Pure: what to write where, with
// every value quoted the way systemd reads it.
import { join } from "node:path";
import type { ServiceUnit, UnitFile } from "./unit.ts";

const WATCHDOG_SECONDS = 60;
/** The pit allows 60 s for its final checkpoints. */
const STOP_SECONDS = 90;

export function systemdFiles(unit: ServiceUnit): UnitFile[] {
  const directory =
    unit.scope === "system"
      ? "/etc/systemd/system"
      : join(unit.configHome ?? join(unit.home, ".config"), "systemd", "user");
  const { schedule } = unit;
  const texts: [suffix: string, text: string][] =
    schedule === "always"
      ? [["service", daemonService(unit)]]
      : [
          ["service", oneshotService(unit)],
          ["timer", timer(unit, schedule.everyMinutes)],
        ];
  return texts.map(([suffix, text]) => ({ path: join(directory, `${unit.name}.${suffix}`), text }));
}

/** The unit to enable: the service itself, or the timer that starts it. */
export function systemdTarget({ name, schedule }: ServiceUnit): string {
  return `${name}.${schedule === "always" ? "service" : "timer"}`;
}

function daemonService(unit: ServiceUnit): string {
  const settings = unit.environment.map(([name, value]) => `Environment=${quoteAssignment(name, value)}`);
  if (unit.runAs !== undefined) settings.push(`User=${escapeSpecifiers(unit.runAs)}`);
  return `# ${unit.mark}
[Unit]
Description=${escapeSpecifiers(unit.description)}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart=${systemdCommand(unit.command)}
${settings.map((line) => `${line}\n`).join("")}Restart=always
RestartSec=2
# 78 means an invalid configuration: a restart would fail again.
RestartPreventExitStatus=78
WatchdogSec=${WATCHDOG_SECONDS}
TimeoutStopSec=${STOP_SECONDS}
# Stop only the pit: agents keep running under their keepers, and the next pit adopts them.
KillMode=process
# The pit creates a control group for each life.
Delegate=yes
# An OOM-killed agent must not take the pit and the other agents with it.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy=${unit.scope === "system" ? "multi-user.target" : "default.target"}
`;
}

function oneshotService(unit: ServiceUnit): string {
  return `# ${unit.mark}
[Unit]
Description=${escapeSpecifiers(unit.description)}

[Service]
Type=oneshot
ExecStart=${systemdCommand(unit.command)}
# 3 means that findings were reported; the unit itself did not fail.
SuccessExitStatus=3
`;
}

function timer(unit: ServiceUnit, everyMinutes: number): string {
  return `# ${unit.mark}
[Unit]
Description=Lazarus self-check every ${everyMinutes} minutes

[Timer]
OnBootSec=2min
OnUnitActiveSec=${everyMinutes}min
Unit=${unit.name}.service

[Install]
WantedBy=timers.target
`;
}

/** systemd accepts no quote, backslash or dollar in the program's path; such a program is started through `env`. */
function systemdCommand(words: readonly string[]): string {
  const plain = /^[^$"'\\]*$/.test(words[0]!);
  return [...(plain ? [] : ["/usr/bin/env"]), ...words].map(systemdWord).join(" ");
}

function systemdWord(word: string): string {
  const escaped = escapeSpecifiers(word)
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(word) ? escaped : `"${escaped}"`;
}

/** Always quoted: a space would end the assignment, and `%` and `\` have a meaning in it. */
function quoteAssignment(name: string, value: string): string {
  const assignment = escapeSpecifiers(`${name}=${value}`);
  return `"${assignment.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** `%` starts a specifier in unit files; a line break would start a new setting. */
function escapeSpecifiers(text: string): string {
  return text.replaceAll("%", "%%").replaceAll(/[\r\n]/g, " ");
}
