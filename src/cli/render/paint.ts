// Colors, on a terminal or when FORCE_COLOR asks for them, never with NO_COLOR; and escaping of untrusted text.
import { styleText } from "node:util";

export interface Painter {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** `onTerminal` returns whether the stream is a terminal: stdout and stderr often differ. */
export function createPainter(
  env: Readonly<Record<string, string | undefined>>,
  onTerminal: () => boolean,
): Painter {
  const enabled = colorPreference(env) ?? onTerminal();
  const style = (format: keyof Painter) => (text: string) =>
    enabled ? styleText(format, text, { validateStream: false }) : text;
  return {
    bold: style("bold"),
    dim: style("dim"),
    red: style("red"),
    green: style("green"),
    yellow: style("yellow"),
    cyan: style("cyan"),
  };
}

/** The preference in the environment; undefined leaves the choice to the terminal. */
function colorPreference(env: Readonly<Record<string, string | undefined>>): boolean | undefined {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0";
  return env.TERM === "dumb" ? false : undefined;
}

/** Escapes control characters in untrusted text, so that it cannot control the terminal. */
export function escapeControls(text: string): string {
  return text.replace(
    // C0, DEL, C1, bidirectional overrides and line separators.
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** JSON without raw characters that could control a terminal. */
export function formatJson(value: object): string {
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
