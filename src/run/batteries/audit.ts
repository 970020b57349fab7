// An append-only audit log of runs in SQLite: numbered events per run, and the chain of parent runs. Triggers refuse
// updates and deletes. Implements the kernel's audit port.
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { redactSecrets } from "../../platform/secrets/redact.ts";
import { type DatabaseSpec, openDatabase } from "../../platform/sqlite.ts";
import type { AuditPort, RunEvent } from "../kernel/ports.ts";

/** One recorded event of a run. */
export interface AuditEntry extends RunEvent {
  readonly runId: string;
  /** Counts from 1 within its run. */
  readonly sequence: number;
  readonly parentRunId: string | null;
  readonly timeMs: number;
}

/** An append-only log, usable as `ports.audit`. */
export interface AuditLog extends AuditPort, Disposable {
  /** The events of one run, in order. */
  read(runId: string): AuditEntry[];
  /** The run, its parent, and so on up to the root. */
  ancestors(runId: string): string[];
}

const AUDIT_DATABASE: DatabaseSpec = {
  what: "the audit log",
  /** "LAZA" */
  applicationId: 0x4c415a41,
  migrations: [
    `
    CREATE TABLE event (
      run      TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      parent   TEXT,
      time_ms  INTEGER NOT NULL,
      step     INTEGER NOT NULL,
      kind     TEXT NOT NULL,
      data     TEXT NOT NULL,
      PRIMARY KEY (run, sequence)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER event_is_append_only_update BEFORE UPDATE ON event
      BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
    CREATE TRIGGER event_is_append_only_delete BEFORE DELETE ON event
      BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
    `,
  ],
  newer: "RUN_STORE_NEWER",
  foreign: "RUN_STORE_FOREIGN",
  damaged: "RUN_STORE_DAMAGED",
};

/** Opens or creates the log at `path`. Secrets in event data are redacted. */
export function openAuditLog(path: string, machine: Machine = systemMachine): AuditLog {
  const database = openDatabase(machine, path, AUDIT_DATABASE);
  const insert = database.prepare(`
    INSERT INTO event (run, sequence, parent, time_ms, step, kind, data)
    SELECT :run, coalesce(max(sequence), 0) + 1, :parent, :nowMs, :step, :kind, :data FROM event WHERE run = :run`);
  const select = database.prepare(`
    SELECT run AS runId, sequence, parent AS parentRunId, time_ms AS timeMs, step, kind, data
    FROM event WHERE run = ? ORDER BY sequence`);
  const parent = database.prepare("SELECT parent FROM event WHERE run = ? AND sequence = 1");
  let queue: Promise<void> = Promise.resolve();
  return {
    record(info, event) {
      const nowMs = Math.floor(machine.clock.nowMs());
      // Serialized, since redaction is asynchronous and events must stay in order.
      const turn = queue.then(async () => {
        const data = JSON.stringify((await redactSecrets(event.data)).value);
        insert.run({
          run: info.runId,
          parent: info.parentRunId,
          nowMs,
          step: event.step,
          kind: event.kind,
          data,
        });
      });
      queue = turn.catch(() => {});
      return turn;
    },
    read: (runId) =>
      (select.all(runId) as unknown as (AuditEntry & { data: string })[]).map((row) => ({
        ...row,
        data: JSON.parse(row.data),
      })),
    ancestors(runId) {
      const chain = [runId];
      for (let next = parentOf(runId); next !== null && !chain.includes(next); next = parentOf(next))
        chain.push(next);
      return chain;
    },
    [Symbol.dispose]() {
      database.close();
    },
  };

  function parentOf(runId: string): string | null {
    return (parent.get(runId) as { parent: string | null } | undefined)?.parent ?? null;
  }
}
