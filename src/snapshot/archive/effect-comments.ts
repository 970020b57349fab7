// The effect history in an archive: as comments on the whole archive, which tar skips, so that the archive unpacks to the
// cell and nothing else. Each comment is a header line and whole lines of the history. An archive is untrusted: lines
// that do not match their checksum are dropped when they are read, and the size is bounded.
import { LazarusError } from "../../platform/errors.ts";
import type { CarriedEffects } from "../model/carried-effects.ts";

/** bsdtar refuses headers of more than 1 MiB. */
const PIECE_BYTES = 512 * 1024;
const LIMIT_BYTES = 256 * 1024 * 1024;
const HEAD = /^lazarus effects of (\S{1,200}) at (\d{1,15})\n/;

/** Pieces of at most 512 KiB, unless one line is longer. */
export function effectComments({ bytes, position, checkpoint }: CarriedEffects): string[] {
  const comments: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    let end = bytes.lastIndexOf("\n", at + PIECE_BYTES) + 1;
    if (end <= at) end = bytes.indexOf("\n", at) + 1;
    comments.push(`lazarus effects of ${checkpoint} at ${position}\n${bytes.toString("utf8", at, end)}`);
    at = end;
  }
  return comments;
}

export interface EffectComments {
  add(comment: Buffer): void;
  /** Undefined when the archive has no history. */
  take(): CarriedEffects | undefined;
}

export function collectEffectComments(): EffectComments {
  const pieces: Buffer[] = [];
  let size = 0;
  let head: { checkpoint: string; position: number } | undefined;
  return {
    add(comment) {
      const match = HEAD.exec(comment.toString("latin1", 0, 300));
      if (match === null) return;
      size += comment.length;
      if (size > LIMIT_BYTES)
        throw new LazarusError("LAYER_HOSTILE", "the archive was refused: its effect history is too large");
      head ??= { checkpoint: match[1]!, position: Number(match[2]) };
      pieces.push(Buffer.from(comment.subarray(match[0].length)));
    },
    take: () => head && { bytes: Buffer.concat(pieces), ...head },
  };
}
