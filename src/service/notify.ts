// sd_notify: reports to systemd, or a service manager like it, that the pit is ready, alive or stopping. Does nothing
// without NOTIFY_SOCKET, and never fails because of the socket.
import { posixSupport } from "../platform/posix.ts";

export interface ServiceNotify {
  /** How often to send WATCHDOG=1; undefined when the watchdog is off. */
  readonly watchdogMs: number | undefined;
  send(state: "READY=1" | "WATCHDOG=1" | "STOPPING=1"): void;
}

export function createServiceNotify(
  env: Readonly<Record<string, string | undefined>>,
  ownPid: number,
): ServiceNotify {
  const socket = env.NOTIFY_SOCKET;
  const support = socket ? posixSupport() : undefined;
  const watchdogMicros = Number(env.WATCHDOG_USEC);
  const forThisProcess = env.WATCHDOG_PID === undefined || Number(env.WATCHDOG_PID) === ownPid;
  return {
    // Half the timeout, as sd_watchdog_enabled(3) recommends.
    watchdogMs: socket && forThisProcess && watchdogMicros > 0 ? watchdogMicros / 2000 : undefined,
    send(state) {
      if (!socket || !support?.ok) return;
      try {
        support.posix.sendDatagram(socket, state);
      } catch {}
    },
  };
}
