// The recent output of a terminal, for viewers that attach later: bounded, and safe to print again. Terminal queries are
// left out: the reply of the viewer's terminal would reach the agent as input. No I/O.
import { createEscapeScanner } from "./escapes.ts";

export interface Backlog {
  /** `isAlternate`: whether the alternate screen was in use before this chunk. */
  add(chunk: Buffer, isAlternate: boolean): void;
  /** About the last `limitBytes`, from the beginning of a line. */
  replay(limitBytes?: number): Replay;
}

export interface Replay {
  /** Without what full-screen programs have painted. */
  readonly normal: Buffer;
  /** What is on the alternate screen; empty when its beginning is no longer known. */
  readonly alternate: Buffer;
}

const BACKLOG_BYTES = 256 * 1024;
const NEWLINE = 0x0a;
const ENQUIRY = 0x05;

export function createBacklog(capacityBytes: number = BACKLOG_BYTES): Backlog {
  let chunks: { readonly bytes: Buffer; readonly isAlternate: boolean }[] = [];
  let size = 0;
  let isCut = false;
  return {
    add(chunk, isAlternate) {
      // A copy: the stream may reuse its buffer.
      chunks.push({ bytes: Buffer.from(chunk), isAlternate });
      size += chunk.length;
      let dropped = 0;
      while (size > capacityBytes && dropped < chunks.length - 1) {
        size -= chunks[dropped]!.bytes.length;
        dropped += 1;
      }
      if (dropped === 0) return;
      chunks = chunks.slice(dropped);
      isCut = true;
    },
    replay(limitBytes = capacityBytes) {
      let from = chunks.length;
      for (let total = 0; from > 0 && total < limitBytes; total += chunks[from]!.bytes.length) from -= 1;
      const kept = chunks.slice(from);
      const bytes = Buffer.concat(kept.map((each) => each.bytes));
      const isWhole = from === 0 && !isCut;
      const start = isWhole ? 0 : bytes.indexOf(NEWLINE) + 1;
      return printableAgain(bytes.subarray(start), kept[0]?.isAlternate === true);
    },
  };
}

/** Device attributes, status and mode reports, window reports, terminal version, color and capability queries. */
const QUESTION =
  /^\x1b(?:\[[?>=]?[\d;]*[cn]|\[[\d;]*x|\[\?[\d;]*\$p|\[>[\d;]*q|\[\?u|\[(?:1[1-9]|2[01])(?:;[\d;]*)?t|\][\s\S]*\?(?:\x07|\x1b\\)$|[PX^_]|Z$)/;
const ALTERNATE = /^\x1b\[\?(?:[\d;]*;)?(?:47|1047|1049)(?:;[\d;]*)?([hl])$/;

function printableAgain(bytes: Buffer, startsAlternate: boolean): Replay {
  const normal: Buffer[] = [];
  /** Null when its beginning is missing. */
  let alternate: Buffer[] | null = startsAlternate ? null : [];
  let isAlternate = startsAlternate;
  const put = (part: Buffer) => (isAlternate ? alternate : normal)?.push(part);
  const scanner = createEscapeScanner({
    text: (text) => put(Buffer.from(text.filter((byte) => byte !== ENQUIRY))),
    sequence(sequence) {
      const screen = ALTERNATE.exec(sequence)?.[1];
      if (screen !== undefined) {
        isAlternate = screen === "h";
        alternate = [];
      } else if (!QUESTION.test(sequence)) put(Buffer.from(sequence, "latin1"));
    },
  });
  scanner.scan(bytes);
  return { normal: Buffer.concat(normal), alternate: Buffer.concat(alternate ?? []) };
}
