// The registry as the pit and its checkpoint processes write it: opened on first use, and a write that fails is reported, never
// fatal, because the registry is a cache of the vaults.
import { EventEmitter } from "node:events";
import type { Config } from "../cell/config.ts";
import { messageOf } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { withReserve } from "../platform/reserve.ts";
import { inTransaction } from "../platform/sqlite.ts";
import {
  type Event,
  type EventChannels,
  type NewEvent,
  openRegistry,
  type Registry,
} from "../registry/registry.ts";
import type { MissionContext, RegistryWriter } from "../snapshot/mission-context.ts";
import { reserveFile } from "./paths.ts";

export interface RegistryAccess extends Disposable {
  /** Emits `event` for each recorded event, and `unrecorded` for one that the registry could not take. */
  readonly events: EventEmitter<EventChannels>;
  /** Undefined when it cannot be opened. */
  open(): Registry | undefined;
  recordEvent(event: NewEvent): void;
  /** As in MissionContext. */
  readonly record: MissionContext["record"];
}

/** `warn` is called for each failed attempt, also if the problem is the same. */
export function createRegistryAccess(
  machine: Machine,
  config: Config,
  warn: (line: string) => void,
): RegistryAccess {
  const events = new EventEmitter<EventChannels>();
  events.setMaxListeners(0);
  let registry: Registry | undefined;
  const open = (): Registry | undefined => {
    try {
      registry ??= openRegistry(machine, config.registry_file);
    } catch (error) {
      warn(`cannot open the registry: ${messageOf(error)}; try: lazarus registry rebuild`);
    }
    return registry;
  };
  return {
    events,
    open,
    recordEvent(event) {
      try {
        const recorded = withReserve(machine.disk, reserveFile(config), () => open()?.append(event));
        if (recorded !== undefined) events.emit("event", recorded);
        else events.emit("unrecorded", event);
      } catch (error) {
        warn(`cannot write to the event log: ${messageOf(error)}`);
        events.emit("unrecorded", event);
      }
    },
    record(work) {
      const opened = open();
      if (opened === undefined) return;
      const appended: Event[] = [];
      const writer: RegistryWriter = {
        database: opened.database,
        append(event) {
          const recorded = opened.append(event);
          appended.push(recorded);
          return recorded;
        },
      };
      try {
        inTransaction(opened.database, () => work(writer));
        for (const event of appended) events.emit("event", event);
      } catch (error) {
        warn(`cannot write to the registry: ${messageOf(error)}; try: lazarus registry rebuild`);
      }
    },
    [Symbol.dispose]() {
      registry?.[Symbol.dispose]();
      registry = undefined;
    },
  };
}
