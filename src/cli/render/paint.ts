// Colour for people who want it: a terminal, and no NO_COLOR. Text from outside is made harmless before it is printed.

export interface Painter {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** `onTerminal` is about the stream that will be painted: stdout and stderr often differ. */
export function createPainter(
  env: Readonly<Record<string, string | undefined>>,
  onTerminal: () => boolean,
): Painter {
  const wanted = wantsColour(env) ?? onTerminal();
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

/** What the environment says about colour; undefined when it leaves the choice to the terminal. */
function wantsColour(env: Readonly<Record<string, string | undefined>>): boolean | undefined {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0";
  return env.TERM === "dumb" ? false : undefined;
}

/** Text from files and strangers: control characters and terminal escapes become visible, harmless marks. */
export function harmless(text: string): string {
  return text.replace(
    // C0, DEL, C1, bidirectional overrides and line separators.
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** JSON that a terminal can show: the same value, with what would steer the terminal written as escapes. */
export function formatJson(value: object): string {
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
