// The pit as a service, in the words of each scheduler: systemd unit, launchd job, cron line. Pure: what to write where.
// Two things matter in all of them: agents and their keepers outlive a restart of the pit, and the pit is started again
// whenever it ends. A home that is not the default one has units of its own, named by its path.
import { join } from "node:path";
import { sha256Hex } from "../platform/sha256.ts";
import {
  plistDocument,
  type Scheduler,
  shellWord,
  specifiers,
  systemdWord,
  type UnitFile,
  xml,
} from "./schedule.ts";

export interface UnitRequest {
  readonly scheduler: Scheduler;
  readonly scope: "user" | "system";
  /** The program and its first arguments: node and the launcher, by absolute path. */
  readonly program: readonly string[];
  readonly home: string;
  readonly configHome?: string | undefined;
  /** LAZARUS_HOME and --config, when they are set: what tells one pit from another. */
  readonly lazarusHome?: string | undefined;
  readonly configFile?: string | undefined;
  /** Where agents' programs are found: that of whoever installs. */
  readonly searchPath?: string | undefined;
  /** For system units: the user whose agents they are; root when not said. */
  readonly runAs?: string | undefined;
}

/** In every file we write, so that uninstall removes only its own. */
export const PIT_MARK = "made by lazarus pit install";

const WATCHDOG_SECONDS = 60;
/** The pit gives its last checkpoints 60 s. */
const STOP_SECONDS = 90;

/** The same every time for one home, and different for two. */
export function pitUnitName({ lazarusHome, configFile }: UnitRequest): string {
  const key = [lazarusHome ?? "", configFile ?? ""].join("\0");
  return key === "\0" ? "lazarus-pit" : `lazarus-pit-${sha256Hex(key).slice(0, 8)}`;
}

function commandLine({ program, configFile }: UnitRequest): string[] {
  return [...program, "pit", ...(configFile === undefined ? [] : ["--config", configFile])];
}

function environment({ lazarusHome, searchPath }: UnitRequest): [name: string, value: string][] {
  const pairs: [string, string | undefined][] = [
    ["PATH", searchPath],
    ["LAZARUS_HOME", lazarusHome],
  ];
  return pairs.filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== "");
}

export function pitSystemdUnit(request: UnitRequest): UnitFile {
  const system = request.scope === "system";
  const directory = system
    ? "/etc/systemd/system"
    : join(request.configHome ?? join(request.home, ".config"), "systemd", "user");
  const settings = environment(request).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  if (system && request.runAs !== undefined) settings.push(`User=${specifiers(request.runAs)}`);
  const text = `# ${PIT_MARK}
[Unit]
Description=Lazarus pit: watches agents and brings them back
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart=${systemdCommand(commandLine(request))}
${settings.map((line) => `${line}\n`).join("")}Restart=always
RestartSec=2
# 78 is a broken configuration: starting again cannot mend it.
RestartPreventExitStatus=78
WatchdogSec=${WATCHDOG_SECONDS}
TimeoutStopSec=${STOP_SECONDS}
# Only the pit itself is stopped: its agents go on under their keepers, and the next pit adopts them.
KillMode=process
# An agent that the kernel kills for want of memory must not take the pit and the others with it.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy=${system ? "multi-user.target" : "default.target"}
`;
  return { path: join(directory, `${pitUnitName(request)}.service`), text };
}

/** systemd takes the first word as it stands, and no quote, backslash or dollar in it: then `env` starts the program. */
function systemdCommand(words: readonly string[]): string {
  const plain = /^[^$"'\\]*$/.test(words[0]!);
  return [...(plain ? [] : ["/usr/bin/env"]), ...words].map(systemdWord).join(" ");
}

/** An assignment is always quoted: spaces end it, and \`%\` and \`\\\` mean something within it. */
function quoted(assignment: string): string {
  return `"${specifiers(assignment).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

export function pitLaunchdPlist(request: UnitRequest): UnitFile {
  const label = `dev.${pitUnitName(request)}`;
  const system = request.scope === "system";
  const directory = system ? "/Library/LaunchDaemons" : join(request.home, "Library", "LaunchAgents");
  const log = system ? "/Library/Logs" : join(request.home, "Library", "Logs");
  const variables = environment(request)
    .map(([name, value]) => `    <key>${xml(name)}</key>\n    <string>${xml(value)}</string>\n`)
    .join("");
  const user =
    system && request.runAs !== undefined
      ? `  <key>UserName</key>\n  <string>${xml(request.runAs)}</string>\n`
      : "";
  const text = plistDocument({
    mark: PIT_MARK,
    label,
    words: commandLine(request),
    rest: `${user}  <key>EnvironmentVariables</key>
  <dict>
${variables}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>${STOP_SECONDS}</integer>
  <key>StandardErrorPath</key>
  <string>${xml(join(log, `${pitUnitName(request)}.log`))}</string>
`,
  });
  return { path: join(directory, `${label}.plist`), text };
}

/** Started every minute: a pit that runs already makes the new one end at once. Name in a comment at the end. */
export function pitCronLine(request: UnitRequest): string {
  const variables = environment(request).map(([name, value]) => shellWord(`${name}=${value}`));
  const words = [
    ...(variables.length === 0 ? [] : ["env", ...variables]),
    ...commandLine(request).map(shellWord),
  ];
  // cron reads % as a line break.
  const line = `${words.join(" ")} --quiet >/dev/null 2>&1`.replaceAll("%", "\\%");
  return `* * * * * ${line} # ${pitUnitName(request)}`;
}
