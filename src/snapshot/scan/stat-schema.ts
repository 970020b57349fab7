// The tables of the stat store.
import type { DatabaseSpec } from "../../platform/sqlite.ts";

export const STAT_STORE: DatabaseSpec = {
  what: "the stat store",
  applicationId: 0x4c5a5354, // "LZST"
  migrations: [
    `CREATE TABLE meta (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       layers TEXT NOT NULL,
       rules TEXT NOT NULL,
       files INTEGER NOT NULL, directories INTEGER NOT NULL, others INTEGER NOT NULL, bytes INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE directories (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
     CREATE TABLE entries (
       parent INTEGER NOT NULL, name TEXT NOT NULL,
       type INTEGER NOT NULL, mode INTEGER NOT NULL, size INTEGER NOT NULL,
       mtime_sec INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ms REAL,
       ino REAL NOT NULL, nlink INTEGER NOT NULL, racy INTEGER NOT NULL, partial INTEGER NOT NULL,
       uid INTEGER NOT NULL, gid INTEGER NOT NULL, sha256 BLOB, "group" TEXT, extra TEXT,
       PRIMARY KEY (parent, name)
     ) WITHOUT ROWID, STRICT;
     CREATE INDEX entries_ino ON entries (ino);
     CREATE INDEX entries_racy ON entries (racy) WHERE racy = 1;
     CREATE INDEX entries_fifo ON entries (type) WHERE type = 3;
     CREATE INDEX entries_group ON entries ("group") WHERE "group" IS NOT NULL;
     CREATE TABLE skipped (path TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;`,
    "CREATE INDEX entries_linked ON entries (ino, nlink) WHERE type = 0 AND nlink > 1;",
  ],
  newer: "INTERNAL",
  foreign: "INTERNAL",
  damaged: "INTERNAL",
};
