// Stored values for people and for JSON: what JSON would drop or refuse is shown in the closest JSON form. Pure.

/** A value as JSON data: a map is an object or a list of pairs, a set a list, bytes are base64, bigints and errors are strings. */
export function plainJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, readable) ?? "null");
}

/** A value as one line of JSON. */
export function plainText(value: unknown): string {
  return JSON.stringify(value, readable) ?? "undefined";
}

function readable(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Set) return [...value];
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (value instanceof RegExp || value instanceof Error) return String(value);
  if (value instanceof Map) {
    const pairs = [...value];
    return pairs.every(([key]) => typeof key === "string") ? Object.fromEntries(pairs) : pairs;
  }
  return value;
}
