// What installing and removing the pit's service comes to, as a list of actions: `--dry-run` prints it, `carryOut` does
// it. Doing it twice changes nothing; files that Lazarus did not write are left alone.
import { type Action, type RunProgram, readCrontab, removeOwn, writeOwn } from "../flow/install/install.ts";
import { editCrontab } from "./schedule.ts";
import {
  PIT_MARK,
  pitCronLine,
  pitLaunchdPlist,
  pitSystemdUnit,
  pitUnitName,
  type UnitRequest,
} from "./unit.ts";

const READABLE = 0o644;
const BY_HAND = "lazarus pit install cron --dry-run";

export function planPitInstall(request: UnitRequest, run: RunProgram): Action[] {
  if (request.scheduler === "systemd") {
    const written = writeOwn(pitSystemdUnit(request), READABLE, PIT_MARK);
    const unit = `${pitUnitName(request)}.service`;
    if (isForeign(written)) return [written];
    // Restarting costs the agents nothing, but is needless when nothing has changed.
    return written.do === "write"
      ? [
          written,
          systemctl(request, "daemon-reload"),
          systemctl(request, "enable", unit),
          systemctl(request, "restart", unit),
        ]
      : [written, systemctl(request, "enable", "--now", unit)];
  }
  if (request.scheduler === "launchd") {
    const plist = pitLaunchdPlist(request);
    const written = writeOwn(plist, READABLE, PIT_MARK);
    if (written.do !== "write") return [written];
    return [written, { do: "run", command: ["launchctl", "load", "-w", plist.path] }];
  }
  const crontab = readCrontab(run, BY_HAND);
  const edited = editCrontab(crontab, pitUnitName(request), pitCronLine(request));
  if (edited === crontab) return [{ do: "nothing", path: "crontab", reason: "needs no change" }];
  return [{ do: "run", command: ["crontab", "-"], input: edited }];
}

export function planPitUninstall(request: UnitRequest, run: RunProgram): Action[] {
  if (request.scheduler === "systemd") {
    const removed = removeOwn(pitSystemdUnit(request), PIT_MARK);
    if (removed.do !== "remove") return [removed];
    const unit = `${pitUnitName(request)}.service`;
    return [systemctl(request, "disable", "--now", unit), removed, systemctl(request, "daemon-reload")];
  }
  if (request.scheduler === "launchd") {
    const plist = pitLaunchdPlist(request);
    const removed = removeOwn(plist, PIT_MARK);
    if (removed.do !== "remove") return [removed];
    return [{ do: "run", command: ["launchctl", "unload", "-w", plist.path] }, removed];
  }
  const crontab = readCrontab(run, BY_HAND);
  const without = editCrontab(crontab, pitUnitName(request), undefined);
  if (without === crontab) return [{ do: "nothing", path: "crontab", reason: "has no line of ours" }];
  return [{ do: "run", command: ["crontab", "-"], input: without }];
}

function isForeign(action: Action): boolean {
  return action.do === "nothing" && action.reason.startsWith("is left alone");
}

function systemctl({ scope }: UnitRequest, ...args: string[]): Action {
  return { do: "run", command: ["systemctl", ...(scope === "user" ? ["--user"] : []), ...args] };
}
