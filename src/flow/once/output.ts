// Captures the output of a command, bounded: the head, the tail, and how many bytes in between were dropped. UTF-8 is stored
// as text, anything else as base64, so that a replay prints the same bytes.

const HEAD_BYTES = 128 * 1024;
const TAIL_BYTES = 128 * 1024;

/** Captured output in its stored form. */
export interface Captured {
  readonly encoding: "utf8" | "base64";
  readonly head: string;
  readonly tail: string;
  /** Bytes dropped between head and tail. */
  readonly omittedBytes: number;
}

export interface OutputCapture {
  add(chunk: Buffer): void;
  finish(): Captured;
}

export function createCapture(headBytes = HEAD_BYTES, tailBytes = TAIL_BYTES): OutputCapture {
  const head: Buffer[] = [];
  let headLength = 0;
  let tail: Buffer[] = [];
  let tailLength = 0;
  let omittedBytes = 0;
  return {
    add(chunk) {
      const forHead = chunk.subarray(0, headBytes - headLength);
      if (forHead.length > 0) {
        // A copy: the stream may reuse its buffer.
        head.push(Buffer.from(forHead));
        headLength += forHead.length;
      }
      const rest = chunk.subarray(forHead.length);
      if (rest.length === 0) return;
      tail.push(Buffer.from(rest));
      tailLength += rest.length;
      // Not at every chunk: shrinking only at twice the size keeps this linear.
      if (tailLength > 2 * tailBytes) shrink();
    },
    finish() {
      if (tailLength > tailBytes) shrink();
      // Complete output is kept as one text: a character or a secret may span head and tail.
      const first = Buffer.concat(omittedBytes === 0 ? [...head, ...tail] : head);
      const last = Buffer.concat(omittedBytes === 0 ? [] : tail);
      const encoding = isUtf8(first) && isUtf8(last) ? "utf8" : "base64";
      return { encoding, head: first.toString(encoding), tail: last.toString(encoding), omittedBytes };
    },
  };

  function shrink(): void {
    const all = Buffer.concat(tail);
    const kept = all.subarray(all.length - tailBytes);
    omittedBytes += all.length - kept.length;
    tail = [kept];
    tailLength = kept.length;
  }
}

function isUtf8(bytes: Buffer): boolean {
  return process.getBuiltinModule("node:buffer").isUtf8(bytes);
}

/** Applies `change` to the text. Output that is not UTF-8 is passed as latin1, which keeps its bytes. */
export async function mapCaptured(
  output: Captured,
  change: (text: string) => Promise<string>,
): Promise<Captured> {
  if (output.encoding === "utf8") {
    return { ...output, head: await change(output.head), tail: await change(output.tail) };
  }
  const changed = async (base64: string) =>
    Buffer.from(await change(Buffer.from(base64, "base64").toString("latin1")), "latin1").toString("base64");
  return { ...output, head: await changed(output.head), tail: await changed(output.tail) };
}

/** At most `bytes` of the output: its head and tail. */
export function shortenCaptured(output: Captured, bytes: number): Captured {
  const { encoding, omittedBytes } = output;
  const head = Buffer.from(output.head, encoding);
  const tail = Buffer.from(output.tail, encoding);
  if (head.length + tail.length <= bytes) return output;
  const capture = createCapture(bytes / 2, bytes / 2);
  capture.add(head);
  capture.add(tail);
  const short = capture.finish();
  return { ...short, omittedBytes: short.omittedBytes + omittedBytes };
}

/** The bytes to print again, with a line that says how much is missing. */
export function replayBytes({ encoding, head, tail, omittedBytes }: Captured): Buffer {
  const gap = omittedBytes > 0 ? `\n[… ${omittedBytes} bytes not recorded …]\n` : "";
  return Buffer.concat([Buffer.from(head, encoding), Buffer.from(gap), Buffer.from(tail, encoding)]);
}

/** Parses stored output; anything invalid counts as empty output. */
export function parseCaptured(value: unknown): Captured {
  const { encoding, head, tail, omittedBytes } = (value ?? {}) as Record<string, unknown>;
  return {
    encoding: encoding === "base64" ? "base64" : "utf8",
    head: typeof head === "string" ? head : "",
    tail: typeof tail === "string" ? tail : "",
    omittedBytes: typeof omittedBytes === "number" ? omittedBytes : 0,
  };
}
