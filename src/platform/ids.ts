// Randomness is injected (INV-9). This is the only file that may read it from the system.

export interface IdSource {
  /** `n` unpredictable bytes. */
  bytes(n: number): Uint8Array;
}

/** node:crypto takes 8 ms to load, so it is loaded lazily on first use. */
export const systemIds: IdSource = { bytes: (n) => process.getBuiltinModule("node:crypto").randomBytes(n) };

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** `length` characters of lowercase Crockford base 32: safe in file names and tags, and easy to read aloud. */
export function randomText(ids: IdSource, length: number): string {
  let text = "";
  for (const byte of ids.bytes(length)) text += ALPHABET[byte & 31];
  return text;
}

/**
 * An id that sorts by time: `20261115-235301-x7k2p9`. The time is UTC to the second; the rest is random, so that two
 * machines do not create the same id.
 */
export function timeOrderedId(nowMs: number, ids: IdSource): string {
  const iso = new Date(nowMs).toISOString();
  return `${iso.slice(0, 10).replaceAll("-", "")}-${iso.slice(11, 19).replaceAll(":", "")}-${randomText(ids, 6)}`;
}

/** A random UUID (version 4). */
export function randomUuid(ids: IdSource): string {
  const bytes = ids.bytes(16);
  const hex = Buffer.from(bytes).toString("hex");
  const variant = ((bytes[8]! & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20)}`;
}
