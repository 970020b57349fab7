// The arguments of a process as the kernel has them, where Node could not decode them. Pure.
import { decodePath } from "../snapshot/model/path-bytes.ts";

/** `commandLine` is /proc/PID/cmdline, whose last words are `words` as Node decoded them. */
export function decodeArguments(commandLine: Uint8Array, words: readonly string[]): string[] {
  const all: Uint8Array[] = [];
  for (let start = 0; start < commandLine.length; ) {
    const end = commandLine.indexOf(0, start);
    all.push(commandLine.subarray(start, end < 0 ? commandLine.length : end));
    start = end < 0 ? commandLine.length : end + 1;
  }
  const last = all.slice(all.length - words.length);
  // Another process title, or a truncated line: what Node has is better than a guess.
  const isSame = last.every((bytes, i) => Buffer.from(bytes).toString() === words[i]);
  return isSame && last.length === words.length ? last.map(decodePath) : [...words];
}
