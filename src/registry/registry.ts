// The registry: an append-only event log and an index of all checkpoints, in SQLite. The index is a cache of the vaults:
// losing the registry loses no checkpoint, and no cell depends on it.
import type { Machine } from "../platform/machine.ts";
import { type DatabaseSpec, type DatabaseSync, databaseError, openDatabase } from "../platform/sqlite.ts";
import { APPLICATION_ID, MIGRATIONS } from "./schema.ts";

export const EVENT_KINDS = [
  "init",
  "heartbeat-gap",
  "checkpoint",
  "restore",
  "undo",
  "prune",
  "delete",
  "verify",
  "start",
  "departure",
  "death",
  "stall",
  "revival",
  "stop",
  "tombstone",
  "alert",
  "delivery",
] as const;

/** The kind of an event. */
export type EventKind = (typeof EVENT_KINDS)[number];

export interface NewEvent {
  readonly kind: EventKind;
  /** Null for events of the whole machine. */
  readonly mission: string | null;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** A recorded event. */
export interface Event {
  readonly seq: number;
  readonly time_ms: number;
  readonly mission: string | null;
  readonly kind: EventKind;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What the pit emits in its own process: each event, and those that could not be recorded because the disk is full. */
export interface EventChannels {
  event: [Event];
  unrecorded: [NewEvent];
}

export interface EventQuery {
  readonly mission?: string | undefined;
  /** Only events after this number. */
  readonly afterSeq?: number;
  /** Only the newest N, oldest first. */
  readonly last?: number;
  /** Only the oldest N, for readers that page through the log. Excludes `last`. */
  readonly first?: number;
}

/** The event log and the index of checkpoints. */
export interface Registry extends Disposable {
  readonly path: string;
  /** Durable at return. Returns the event with its number. */
  append(event: NewEvent): Event;
  events(query: EventQuery): Event[];
  /** For the modules that own tables in it. */
  readonly database: DatabaseSync;
}

interface EventRow {
  seq: number;
  time_ms: number;
  mission: string | null;
  kind: EventKind;
  data: string;
}

const NO_LIMIT = -1;

const DATABASE: DatabaseSpec = {
  what: "the registry",
  applicationId: APPLICATION_ID,
  migrations: MIGRATIONS,
  newer: "REGISTRY_NEWER",
  foreign: "REGISTRY_FOREIGN",
  damaged: "REGISTRY_DAMAGED",
};

export function openRegistry(machine: Machine, path: string): Registry {
  const database = openDatabase(machine, path, DATABASE);
  const insert = database.prepare(
    "INSERT INTO event (time_ms, mission, kind, data) VALUES (?, ?, ?, ?) RETURNING seq, time_ms, mission, kind, data",
  );
  const select = database.prepare(`
    SELECT * FROM (
      SELECT seq, time_ms, mission, kind, data FROM event
      WHERE seq > :after AND (:mission IS NULL OR mission = :mission)
      ORDER BY seq DESC LIMIT :last
    ) ORDER BY seq`);
  const selectPage = database.prepare(`
    SELECT seq, time_ms, mission, kind, data FROM event
    WHERE seq > :after AND (:mission IS NULL OR mission = :mission) ORDER BY seq LIMIT :first`);
  const toEvent = (row: EventRow): Event => ({ ...row, data: JSON.parse(row.data) });
  return {
    path,
    database,
    append({ kind, mission, data }) {
      try {
        // Not get(): it leaves the statement after the first row and never reports that the commit failed.
        const [row] = insert.all(machine.clock.nowMs(), mission, kind, JSON.stringify(data ?? {}));
        return toEvent(row as unknown as EventRow);
      } catch (error) {
        throw databaseError(error, path, DATABASE);
      }
    },
    events({ mission, afterSeq, last, first }) {
      const range = { after: afterSeq ?? 0, mission: mission ?? null };
      const rows =
        first === undefined
          ? select.all({ ...range, last: last ?? NO_LIMIT })
          : selectPage.all({ ...range, first });
      return (rows as unknown as EventRow[]).map(toEvent);
    },
    [Symbol.dispose]() {
      database.close();
    },
  };
}
