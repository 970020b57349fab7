// Numbers in tar headers: octal, base 256 for larger ones, decimal times in PAX. Pure.

export class TarError extends Error {}

const BASE_256 = 0x80;
const NEGATIVE = 0x40;

/** Reads an octal or base-256 field. An empty one is 0: old archives leave unused fields blank. */
export function readNumber(block: Uint8Array, at: number, width: number, what: string): number {
  const first = block[at]!;
  if ((first & BASE_256) !== 0) return readBase256(block, at, width, what);
  let value = 0;
  let i = at;
  const end = at + width;
  while (i < end && block[i] === 0x20) i += 1;
  for (; i < end && block[i] !== 0 && block[i] !== 0x20; i += 1) {
    const digit = block[i]! - 0x30;
    if (digit < 0 || digit > 7) throw new TarError(`${what} is not an octal number`);
    value = value * 8 + digit;
  }
  return checkSafe(value, what);
}

function readBase256(block: Uint8Array, at: number, width: number, what: string): number {
  const negative = (block[at]! & NEGATIVE) !== 0;
  let value = BigInt(block[at]! & (NEGATIVE - 1));
  for (let i = at + 1; i < at + width; i += 1) value = (value << 8n) | BigInt(block[i]!);
  if (negative) value -= 1n << BigInt(8 * width - 2);
  return checkSafe(Number(value), what);
}

export function readDecimal(text: string, what: string): number {
  if (!/^\d{1,16}$/.test(text)) throw new TarError(`${what} is not a decimal number`);
  return checkSafe(Number(text), what);
}

/** "-1.25" → -2 s and 750,000,000 ns: whole seconds floored, and the nanoseconds above them. */
export function readPaxTime(text: string): { mtimeSec: number; mtimeNs: number } {
  const match = /^(-?)(\d{1,15})(?:\.(\d*))?$/.exec(text);
  if (match === null) throw new TarError("mtime is not a decimal number");
  const [, sign, seconds, fraction = ""] = match;
  const whole = Number(seconds);
  const nanos = Number(fraction.slice(0, 9).padEnd(9, "0"));
  if (sign === "") return { mtimeSec: whole, mtimeNs: nanos };
  if (nanos === 0) return { mtimeSec: whole === 0 ? 0 : -whole, mtimeNs: 0 };
  return { mtimeSec: -whole - 1, mtimeNs: 1_000_000_000 - nanos };
}

/** The highest id means "unchanged" to chown. */
const MAX_OWNER = 2 ** 32 - 2;

/** A uid or gid. */
export function checkOwner(id: number, what: string): number {
  if (id > MAX_OWNER) throw new TarError(`${what} ${id} is out of range`);
  return id;
}

function checkSafe(value: number, what: string): number {
  if (!Number.isSafeInteger(value)) throw new TarError(`${what} is out of range`);
  return value;
}
