// Splits terminal output into text and escape sequences (ECMA-48, as xterm reads them). Chunks may end anywhere, also
// inside a sequence or a character. Pure: no I/O.

export interface EscapeHandlers {
  /** Everything outside of sequences, including control characters such as newline. */
  text?(bytes: Buffer): void;
  /** One complete sequence with its ESC, one character per byte. Of a long one, the beginning. */
  sequence(text: string): void;
}

const ESC = 0x1b;
const BEL = 0x07;
const CANCEL = 0x18;
const SUBSTITUTE = 0x1a;
const BACKSLASH = 0x5c;
/** Longer ones carry data (images, clipboards) that is not needed here. */
const KEPT_BYTES = 4096;

type State = "text" | "escape" | "csi" | "string" | "string-escape";

export interface EscapeScanner {
  scan(chunk: Buffer): void;
  /** The unfinished end of a chunk, for the next one. */
  readonly unfinished: string;
}

export function createEscapeScanner(handlers: EscapeHandlers): EscapeScanner {
  let state: State = "text";
  let sequence = "";

  function end(): void {
    state = "text";
    const complete = sequence;
    sequence = "";
    handlers.sequence(complete);
  }

  /** A byte inside a sequence. */
  function step(byte: number): void {
    if (byte === CANCEL || byte === SUBSTITUTE) {
      state = "text";
      sequence = "";
      return;
    }
    if (byte === ESC && state !== "string") {
      state = "escape";
      sequence = "\x1b";
      return;
    }
    if (sequence.length < KEPT_BYTES) sequence += String.fromCharCode(byte);
    switch (state) {
      case "escape":
        if (byte === 0x5b) state = "csi";
        else if ("]PX^_".includes(String.fromCharCode(byte))) state = "string";
        else if (byte >= 0x30 && byte < 0x7f) end();
        return;
      case "csi":
        if (byte >= 0x40 && byte < 0x7f) end();
        return;
      case "string":
        if (byte === ESC) state = "string-escape";
        else if (byte === BEL) end();
        return;
      default:
        // Anything but the terminator (ESC \) has aborted the string and begun another sequence.
        if (byte === BACKSLASH) end();
        else {
          state = "escape";
          sequence = "\x1b";
          step(byte);
        }
    }
  }

  return {
    scan(chunk) {
      for (let at = 0; at < chunk.length; ) {
        if (state !== "text") {
          step(chunk[at]!);
          at += 1;
          continue;
        }
        const found = chunk.indexOf(ESC, at);
        const to = found < 0 ? chunk.length : found;
        if (to > at) handlers.text?.(chunk.subarray(at, to));
        if (found >= 0) {
          state = "escape";
          sequence = "\x1b";
        }
        at = to + 1;
      }
    },
    get unfinished() {
      return sequence;
    },
  };
}
