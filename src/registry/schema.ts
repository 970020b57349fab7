// The registry's schema. Existing migrations are never edited; new ones are appended.

/** "LAZR" */
export const APPLICATION_ID = 0x4c415a52;

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE event (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    time_ms    INTEGER NOT NULL,
    mission    TEXT,
    kind       TEXT NOT NULL,
    data       TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(data))
  ) STRICT;
  CREATE INDEX event_by_mission ON event (mission, seq);
  CREATE TRIGGER event_is_append_only_update BEFORE UPDATE ON event
    BEGIN SELECT raise(ABORT, 'the event log is append-only'); END;
  CREATE TRIGGER event_is_append_only_delete BEFORE DELETE ON event
    BEGIN SELECT raise(ABORT, 'the event log is append-only'); END;

  CREATE TABLE checkpoint (
    mission    TEXT NOT NULL,
    id         TEXT NOT NULL,
    parent     TEXT,
    reason     TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    manifest   TEXT NOT NULL,
    files      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    degraded   INTEGER NOT NULL DEFAULT 0,
    pinned     INTEGER NOT NULL DEFAULT 0,
    proven_ms  INTEGER,
    config     TEXT NOT NULL CHECK (json_valid(config)),
    PRIMARY KEY (mission, id)
  ) STRICT;
  CREATE INDEX checkpoint_by_time ON checkpoint (mission, created_ms);
  `,
];
