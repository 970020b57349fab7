// Colour for people who want it: a terminal, and no NO_COLOR. Text from outside is made harmless before it is printed.
import type { Terminal } from "../terminal.ts";

export interface Painter {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

export function createPainter(
  env: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Painter {
  const wanted = env.NO_COLOR
    ? false
    : env.FORCE_COLOR
      ? true
      : terminal.outIsTerminal && env.TERM !== "dumb";
  const sgr = (open: number, close: number) => (text: string) =>
    wanted ? `\x1b[${open}m${text}\x1b[${close}m` : text;
  return {
    bold: sgr(1, 22),
    dim: sgr(2, 22),
    red: sgr(31, 39),
    green: sgr(32, 39),
    yellow: sgr(33, 39),
    cyan: sgr(36, 39),
  };
}

/** Text from files and strangers: control characters and terminal escapes become visible, harmless marks. */
export function harmless(text: string): string {
  return text.replace(
    // C0, DEL, C1, bidirectional overrides and line separators.
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}
