// A service as a launchd property list. Pure: what to write where.
import { join } from "node:path";
import type { ServiceUnit, UnitFile } from "./unit.ts";

/** The pit allows 60 s for its final checkpoints. */
const STOP_SECONDS = 90;

export function launchdPlist(unit: ServiceUnit): UnitFile {
  const label = `dev.${unit.name}`;
  const directory =
    unit.scope === "system" ? "/Library/LaunchDaemons" : join(unit.home, "Library", "LaunchAgents");
  const words = unit.command.map((word) => `    <string>${escapeXml(word)}</string>\n`).join("");
  const settings =
    unit.schedule === "always" ? daemonSettings(unit) : timerSettings(unit.schedule.everyMinutes);
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${unit.mark} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${escapeXml(label)}</string>
  <key>ProgramArguments</key>
  <array>
${words}  </array>
${settings}</dict>
</plist>
`;
  return { path: join(directory, `${label}.plist`), text };
}

function daemonSettings(unit: ServiceUnit): string {
  const logs = unit.scope === "system" ? "/Library/Logs" : join(unit.home, "Library", "Logs");
  const variables = unit.environment
    .map(([name, value]) => `    <key>${escapeXml(name)}</key>\n    <string>${escapeXml(value)}</string>\n`)
    .join("");
  const user =
    unit.runAs === undefined ? "" : `  <key>UserName</key>\n  <string>${escapeXml(unit.runAs)}</string>\n`;
  return `${user}  <key>EnvironmentVariables</key>
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
  <string>${escapeXml(join(logs, `${unit.name}.log`))}</string>
`;
}

function timerSettings(everyMinutes: number): string {
  return `  <key>StartInterval</key>
  <integer>${everyMinutes * 60}</integer>
  <key>RunAtLoad</key>
  <true/>
  <key>ProcessType</key>
  <string>Background</string>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
