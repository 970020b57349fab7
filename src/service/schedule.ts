// The self-check every ten minutes, in the words of each scheduler: systemd timer, launchd agent, cron line. Pure: what
// to write where, with everything quoted for its reader. Each workspace has units of its own, named by its path.
import { basename, join } from "node:path";
import { sha256Hex } from "../platform/sha256.ts";
import { shellWord } from "../platform/shell-word.ts";

export { shellWord };

export const SCHEDULERS = ["systemd", "launchd", "cron"] as const;
export type Scheduler = (typeof SCHEDULERS)[number];

export interface ScheduleRequest {
  /** The workspace. */
  readonly root: string;
  /** The program and its first arguments: node and the launcher, by absolute path. */
  readonly program: readonly string[];
  readonly home: string;
  readonly isRoot: boolean;
  readonly staleMinutes: number;
  readonly configHome?: string | undefined;
  /** The settings that the self-check is to use; a scheduler knows nothing of the environment that was here. */
  readonly config?: string | undefined;
}

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}

const EVERY_MINUTES = 10;
/** In every file we write, so that uninstall removes only its own. */
export const MARK = "made by lazarus flow install";

/** A name that is the same every time for one workspace, and different for two. */
export function scheduleName(root: string): string {
  const slug = basename(root)
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  return `lazarus-flow-${slug === "" ? "root" : slug}-${sha256Hex(root).slice(0, 8)}`;
}

function commandLine({ root, program, staleMinutes, config }: ScheduleRequest): string[] {
  const words = [...program, "flow", "selfcheck", "--root", root, "--stale-min", String(staleMinutes)];
  return config === undefined ? words : [...words, "--config", config];
}

export function systemdUnits(request: ScheduleRequest): UnitFile[] {
  const name = scheduleName(request.root);
  const directory = request.isRoot
    ? "/etc/systemd/system"
    : join(request.configHome ?? join(request.home, ".config"), "systemd", "user");
  const service = `# ${MARK}
[Unit]
Description=Lazarus self-check of the flows in ${specifiers(request.root)}

[Service]
Type=oneshot
ExecStart=${commandLine(request).map(systemdWord).join(" ")}
# 3 is an alert, which has been sent; the unit itself did not fail.
SuccessExitStatus=3
`;
  const timer = `# ${MARK}
[Unit]
Description=Lazarus self-check every ${EVERY_MINUTES} minutes

[Timer]
OnBootSec=2min
OnUnitActiveSec=${EVERY_MINUTES}min
Unit=${name}.service

[Install]
WantedBy=timers.target
`;
  return [
    { path: join(directory, `${name}.service`), text: service },
    { path: join(directory, `${name}.timer`), text: timer },
  ];
}

export function launchdPlist(request: ScheduleRequest): UnitFile {
  const label = `dev.${scheduleName(request.root)}`;
  const directory = request.isRoot ? "/Library/LaunchDaemons" : join(request.home, "Library", "LaunchAgents");
  const text = plistDocument({
    mark: MARK,
    label,
    words: commandLine(request),
    rest: `  <key>StartInterval</key>
  <integer>${EVERY_MINUTES * 60}</integer>
  <key>RunAtLoad</key>
  <true/>
  <key>ProcessType</key>
  <string>Background</string>
`,
  });
  return { path: join(directory, `${label}.plist`), text };
}

/** A launchd job: its name, its command line, and whatever else its dictionary holds. */
export function plistDocument(job: {
  mark: string;
  label: string;
  words: readonly string[];
  rest: string;
}): string {
  const words = job.words.map((word) => `    <string>${xml(word)}</string>\n`).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${job.mark} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${xml(job.label)}</string>
  <key>ProgramArguments</key>
  <array>
${words}  </array>
${job.rest}</dict>
</plist>
`;
}

/** One line, with its name in a comment at the end. */
export function cronLine(request: ScheduleRequest): string {
  const words = commandLine(request).map(shellWord).join(" ");
  // cron reads % as a line break.
  return `*/${EVERY_MINUTES} * * * * ${`${words} >/dev/null 2>&1`.replaceAll("%", "\\%")} # ${scheduleName(request.root)}`;
}

/** A crontab with our line in it, once; or without it when `line` is undefined. */
export function editCrontab(crontab: string, name: string, line: string | undefined): string {
  const others = crontab.split("\n").filter((each) => !each.endsWith(`# ${name}`));
  while (others.at(-1) === "") others.pop();
  if (line !== undefined) others.push(line);
  return others.length === 0 ? "" : `${others.join("\n")}\n`;
}

export function systemdWord(word: string): string {
  const escaped = specifiers(word).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(word) ? escaped : `"${escaped}"`;
}

/** `%` begins a specifier in unit files; a line break would begin a new setting. */
export function specifiers(text: string): string {
  return text.replaceAll("%", "%%").replaceAll(/[\r\n]/g, " ");
}

export function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
