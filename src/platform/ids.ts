// Randomness is handed in (INV-9). This is the only file that may ask the machine for it.

export interface IdSource {
  /** `n` unpredictable bytes. */
  bytes(n: number): Uint8Array;
}

/** node:crypto costs 8 ms to load, so it is loaded by whoever first needs a random byte. */
export const systemIds: IdSource = { bytes: (n) => process.getBuiltinModule("node:crypto").randomBytes(n) };

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** `length` characters of Crockford base 32, lower case: safe in file names, tags and speech. */
export function randomText(ids: IdSource, length: number): string {
  let text = "";
  for (const byte of ids.bytes(length)) text += ALPHABET[byte & 31];
  return text;
}

/**
 * An id that sorts by time: `20261115-235301-x7k2p9`. The time is UTC to the second, the rest is random,
 * so that two machines never make the same one.
 */
export function timeOrderedId(nowMs: number, ids: IdSource): string {
  const iso = new Date(nowMs).toISOString();
  return `${iso.slice(0, 10).replaceAll("-", "")}-${iso.slice(11, 19).replaceAll(":", "")}-${randomText(ids, 6)}`;
}
