// The files of a SQLite database: the suffixes of the sidecars next to it, and the magic that its content starts with.

/** Files that SQLite keeps next to a database while it is in use. */
export const SIDECAR_SUFFIXES = ["-wal", "-shm", "-journal"] as const;

/** The sidecars that can hold transactions; the -shm file is only an index of the -wal file. */
export const TRANSACTION_SUFFIXES = ["-journal", "-wal"] as const;

export const SQLITE_MAGIC = Buffer.from("SQLite format 3\0", "latin1");

export function sidecarSuffix(name: string): string | undefined {
  return SIDECAR_SUFFIXES.find((suffix) => name.endsWith(suffix));
}

export function isSidecar(name: string): boolean {
  return sidecarSuffix(name) !== undefined;
}
