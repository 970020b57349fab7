// Rows of the stat store as SQLite stores them: columns, type codes, and names that are not UTF-8. Pure.
import type { EntryType } from "../model/entry.ts";
import type { EntryRow, Extra, StatRow } from "./stat-row.ts";

export type Value = string | number | Uint8Array | null;

const TYPES: readonly EntryType[] = ["file", "directory", "symlink", "fifo"];
export const STAT_COLUMNS =
  "name, type, mode, size, mtime_sec, mtime_ns, ctime_ms, ino, nlink, racy, partial";
export const ENTRY_COLUMNS = `${STAT_COLUMNS}, uid, gid, sha256, "group", extra`;

/** In the order of ENTRY_COLUMNS. */
export function encodeRow(row: EntryRow): Value[] {
  const { group = null, ...extra } = row.extra ?? {};
  return [
    encodeText(row.name),
    TYPES.indexOf(row.type),
    row.mode,
    row.size,
    row.mtimeSec,
    row.mtimeNs,
    Number.isNaN(row.ctimeMs) ? null : row.ctimeMs,
    row.ino,
    row.nlink,
    Number(row.isRacy),
    Number(row.isPartial),
    row.uid,
    row.gid,
    row.sha256 === "" ? null : Buffer.from(row.sha256, "hex"),
    group,
    Object.keys(extra).length === 0 ? null : JSON.stringify(extra),
  ];
}

export function decodeStatRow(values: readonly Value[]): StatRow {
  const [name, type, mode, size, mtimeSec, mtimeNs, ctimeMs, ino, nlink, racy, partial] = values as [
    string,
    ...number[],
  ];
  return {
    name: decodeText(name),
    type: TYPES[type!] ?? "file",
    mode: mode!,
    size: size!,
    mtimeSec: mtimeSec!,
    mtimeNs: mtimeNs!,
    ctimeMs: ctimeMs ?? Number.NaN,
    ino: ino!,
    nlink: nlink!,
    isRacy: racy !== 0,
    isPartial: partial !== 0,
  };
}

export function decodeEntryRow(values: readonly Value[]): EntryRow {
  const [uid, gid, sha256, group, text] = values.slice(11) as [
    number,
    number,
    Uint8Array | null,
    ...string[],
  ];
  const extra: Extra = {
    ...(text == null ? {} : (JSON.parse(text) as Extra)),
    ...(group == null ? {} : { group }),
  };
  return {
    ...decodeStatRow(values),
    uid,
    gid,
    sha256: sha256 === null ? "" : Buffer.from(sha256).toString("hex"),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** SQLite has no lone surrogates, which stand for bytes that are not UTF-8: such a byte is written as %XX, and so is "%". */
const UNSAFE = /[%\udc80-\udcff]/gu;
const ESCAPE = /%(..)/g;

export function encodeText(text: string): string {
  return text.replace(UNSAFE, (unit) => `%${(unit.charCodeAt(0) & 0xff).toString(16)}`);
}

export function decodeText(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(ESCAPE, (_, hex: string) => {
    const byte = Number.parseInt(hex, 16);
    return String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte);
  });
}
