// Secrets in a conversation are replaced before it is copied into the cell (INV-7), by the rules of run checkpoints: each one
// becomes `[redacted: kind]`. A line stays one line of valid JSON, and a line without a secret is copied byte for byte.
// The agent's own file is not changed; a restored conversation has the replaced text.
import { findSecrets } from "../../platform/secrets/find.ts";
import { redactSecrets } from "../../platform/secrets/redact.ts";

export interface Redacted {
  readonly bytes: Buffer;
  readonly count: number;
}

const NEWLINE = 0x0a;

/** Lines are checked in batches; those of a batch with a secret are checked one by one. */
const BATCH_BYTES = 64 * 1024;

/** `bytes` are whole lines. */
export async function redactLines(bytes: Buffer): Promise<Redacted> {
  const clean: Buffer[] = [];
  let count = 0;
  for (let start = 0; start < bytes.length; ) {
    const batch = bytes.subarray(start, endOfLine(bytes, Math.min(start + BATCH_BYTES, bytes.length) - 1));
    start += batch.length;
    const lines = batch.toString("utf8").split("\n");
    const parsed = lines.map(parse);
    const isClean = (await redactSecrets(parsed.map((each, i) => each?.value ?? lines[i]))).count === 0;
    if (isClean) clean.push(batch);
    else {
      const redacted = await redactEach(batch);
      clean.push(redacted.bytes);
      count += redacted.count;
    }
  }
  return { bytes: count === 0 ? bytes : Buffer.concat(clean), count };
}

/** Where the line of the byte at `from` ends. */
function endOfLine(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(NEWLINE, from);
  return end < 0 ? bytes.length : end + 1;
}

async function redactEach(bytes: Buffer): Promise<Redacted> {
  const clean: Buffer[] = [];
  let count = 0;
  for (let start = 0; start < bytes.length; ) {
    const raw = bytes.subarray(start, endOfLine(bytes, start));
    start += raw.length;
    const ending = raw.at(-1) === NEWLINE ? "\n" : "";
    const line = await redactText(raw.toString("utf8", 0, raw.length - ending.length));
    clean.push(line.count === 0 ? raw : Buffer.from(line.text + ending));
    count += line.count;
  }
  return { bytes: Buffer.concat(clean), count };
}

/** A file that is replaced as a whole: JSON, or any text. */
export async function redactWhole(bytes: Buffer): Promise<Redacted> {
  const { text, count } = await redactText(bytes.toString("utf8"));
  return { bytes: count === 0 ? bytes : Buffer.from(text), count };
}

async function redactText(text: string): Promise<{ text: string; count: number }> {
  const document = parse(text);
  if (document !== undefined) {
    const { value, count } = await redactSecrets(document.value);
    return { text: count === 0 ? text : JSON.stringify(value), count };
  }
  // Not JSON: a damaged line.
  const ranges = await findSecrets(text);
  let clean = "";
  let done = 0;
  for (const { kind, start, end } of ranges) {
    clean += `${text.slice(done, start)}[redacted: ${kind}]`;
    done = end;
  }
  return { text: clean + text.slice(done), count: ranges.length };
}

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
