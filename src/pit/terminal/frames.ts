// The protocol of the terminal host and its viewers over a unix socket: frames of a type, a length and a payload.
// A viewer sends hello, input and size; the host sends output and, first and after a gap, a paint of the whole screen.

export type FrameType = "hello" | "input" | "size" | "output" | "paint";

/** JSON payload of a hello. */
export interface Hello {
  /** Null: this viewer has no screen, so it does not affect the size. */
  readonly size: { readonly columns: number; readonly rows: number } | null;
  readonly readOnly: boolean;
}

export interface Frame {
  readonly type: FrameType;
  readonly payload: Buffer;
}

const TYPES: readonly FrameType[] = ["hello", "input", "size", "output", "paint"];
const HEADER_BYTES = 5;
/** No frame is longer; a longer one is not of this protocol. */
const LIMIT_BYTES = 4 * 1024 * 1024;

export function encodeFrame(type: FrameType, payload: Uint8Array | string): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(TYPES.indexOf(type), 0);
  header.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

/** Returns a function that takes chunks as they arrive and returns the frames that are complete. Throws on other data. */
export function createFrameDecoder(): (chunk: Buffer) => Frame[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: Frame[] = [];
    while (rest.length >= HEADER_BYTES) {
      const type = TYPES[rest.readUInt8(0)];
      const length = rest.readUInt32BE(1);
      if (type === undefined || length > LIMIT_BYTES) throw new Error("not a frame of this version");
      if (rest.length < HEADER_BYTES + length) break;
      frames.push({ type, payload: rest.subarray(HEADER_BYTES, HEADER_BYTES + length) });
      rest = rest.subarray(HEADER_BYTES + length);
    }
    return frames;
  };
}
