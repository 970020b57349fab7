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
