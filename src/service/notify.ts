// Tells the service manager (systemd and those like it) that the pit is ready, alive and stopping, when it asked to be
// told. A socket that does not answer costs nothing.
import { posixSupport } from "../platform/posix.ts";

export interface ServiceNotify {
  /** How often WATCHDOG=1 is wanted; undefined when it is not. */
  readonly watchdogMs: number | undefined;
  send(state: "READY=1" | "WATCHDOG=1" | "STOPPING=1"): void;
}

export function createServiceNotify(
  env: Readonly<Record<string, string | undefined>>,
  ownPid: number,
): ServiceNotify {
  const socket = env.NOTIFY_SOCKET;
  const support = socket ? posixSupport() : undefined;
  const micros = Number(env.WATCHDOG_USEC);
  const meant = env.WATCHDOG_PID === undefined || Number(env.WATCHDOG_PID) === ownPid;
  return {
    watchdogMs: socket && meant && micros > 0 ? micros / 2000 : undefined,
    send(state) {
      if (!socket || !support?.ok) return;
      try {
        support.posix.sendDatagram(socket, state);
      } catch {}
    },
  };
}
