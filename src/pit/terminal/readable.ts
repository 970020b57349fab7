// Terminal output as lines of text, for logs and for the causes of a crash: without escape sequences, with a line that was
// overwritten shown as it last was. Chunks may end anywhere. Pure: no I/O.
import { StringDecoder } from "node:string_decoder";
import { createEscapeScanner } from "./escapes.ts";

export interface ReadableText {
  /** The lines that are complete now, each with its newline. */
  add(chunk: Buffer): string;
  /** The line that is not complete. */
  rest(): string;
}

/** A line that never ends is cut into pieces. */
const LINE_LIMIT = 64 * 1024;
/** Sequences that move to another line: next line, index, cursor position, up, down; erase display; other screen. */
const NEW_LINE = /^\x1b(?:[DEM]|\[[\d;]*[ABEFHJdf]|\[\?(?:47|1047|1049)[hl]|\[!p|c)$/;
const FORWARD = /^\x1b\[(\d*)C$/;

export function createReadableText(): ReadableText {
  const decoder = new StringDecoder("utf8");
  let line = "";
  /** Where the next character goes: carriage return and backspace move back. */
  let column = 0;
  let done = "";

  function put(text: string): void {
    line = line.slice(0, column) + text + line.slice(column + text.length);
    column += text.length;
    if (line.length > LINE_LIMIT) endLine();
  }
  function endLine(): void {
    done += `${line.trimEnd()}\n`;
    line = "";
    column = 0;
  }
  const scanner = createEscapeScanner({
    text(bytes) {
      for (const part of decoder.write(bytes).match(/[^\x00-\x1f\x7f]+|[\s\S]/g) ?? []) {
        if (part === "\n") endLine();
        else if (part === "\r") column = 0;
        else if (part === "\b") column = Math.max(0, column - 1);
        else if (part >= " " && part !== "\x7f") put(part);
        else if (part === "\t") put(part);
      }
    },
    sequence(sequence) {
      const forward = FORWARD.exec(sequence);
      if (forward !== null) put(" ".repeat(Math.min(Number(forward[1] || 1), 500)));
      else if (/^\x1b\[0?K$/.test(sequence)) line = line.slice(0, column);
      // A screen that is painted line by line: what is already there is not repeated as an empty line.
      else if (NEW_LINE.test(sequence) && line !== "") endLine();
    },
  });
  return {
    add(chunk) {
      scanner.scan(chunk);
      const complete = done;
      done = "";
      return complete;
    },
    rest: () => line.trimEnd(),
  };
}

export function readableText(bytes: Buffer): string {
  const text = createReadableText();
  return `${text.add(bytes)}${text.rest()}`;
}
