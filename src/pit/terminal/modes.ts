// The state of a terminal apart from what is on the screen: alternate screen, mouse, bracketed paste, cursor, keyboard.
// A viewer that attaches later needs it, and it must be undone on a terminal that detaches. Pure: no I/O.

export interface TerminalModes {
  /** Updates the state from a sequence that the agent has written. */
  apply(sequence: string): void;
  readonly isAlternate: boolean;
  /** The sequences that put a new terminal into this state. */
  enter(): string;
  /** The sequences that put it back into the state that a shell expects. */
  leave(): string;
}

const ALTERNATE = [47, 1047, 1049];
/** DEC private modes that are off by default: cursor keys, reverse, origin, mouse, focus, paste, color scheme, resizing. */
const OFF = [1, 5, 6, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2031, 2048];
/** On by default: wrap, cursor. */
const ON = [7, 25];
/** Begun and ended within one frame, so never entered, only left: synchronized output. */
const TRANSIENT = 2026;
/** A program that only pushes keyboard modes must not use unlimited memory. */
const MAX_KEYBOARDS = 64;

export function createTerminalModes(): TerminalModes {
  const changed = new Set<number>();
  let alternate: number | undefined;
  let isSynchronized = false;
  let keypad = false;
  let cursorStyle = "";
  let otherKeys = "";
  let keyboards: string[] = [];
  let hasMargins = false;

  function reset(): void {
    changed.clear();
    alternate = undefined;
    keypad = isSynchronized = hasMargins = false;
    cursorStyle = otherKeys = "";
    keyboards = [];
  }

  function setPrivate(mode: number, isOn: boolean): void {
    if (ALTERNATE.includes(mode)) alternate = isOn ? mode : undefined;
    else if (mode === TRANSIENT) isSynchronized = isOn;
    else if (OFF.includes(mode) || ON.includes(mode)) {
      if (isOn === ON.includes(mode)) changed.delete(mode);
      else changed.add(mode);
    }
  }

  const privateModes = (isEntering: boolean) =>
    [...changed].map((mode) => `\x1b[?${mode}${ON.includes(mode) === isEntering ? "l" : "h"}`).join("");

  return {
    apply(sequence) {
      const [, modes, action] = /^\x1b\[\?([\d;]+)([hl])$/.exec(sequence) ?? [];
      if (modes !== undefined) for (const mode of modes.split(";")) setPrivate(Number(mode), action === "h");
      else if (sequence === "\x1bc") reset();
      else if (sequence === "\x1b[!p") {
        for (const mode of [1, 6, 7, 25]) setPrivate(mode, ON.includes(mode));
        keypad = hasMargins = false;
      } else if (sequence === "\x1b=" || sequence === "\x1b>") keypad = sequence === "\x1b=";
      else if (/^\x1b\[[\d;]*r$/.test(sequence)) hasMargins = sequence !== "\x1b[r";
      else if (/^\x1b\[\d* q$/.test(sequence)) cursorStyle = /[1-9]/.test(sequence) ? sequence : "";
      else if (/^\x1b\[>4(?:;\d*)?m$/.test(sequence)) otherKeys = /;[1-9]/.test(sequence) ? sequence : "";
      else if (/^\x1b\[>\d*u$/.test(sequence)) keyboards = [...keyboards, sequence].slice(-MAX_KEYBOARDS);
      else if (/^\x1b\[<\d*u$/.test(sequence)) {
        const count = Number(sequence.slice(3, -1) || 1);
        keyboards = keyboards.slice(0, Math.max(0, keyboards.length - count));
      }
    },
    get isAlternate() {
      return alternate !== undefined;
    },
    enter() {
      const screen = alternate === undefined ? "" : `\x1b[?${alternate}h`;
      return `${screen}${privateModes(true)}${keypad ? "\x1b=" : ""}${cursorStyle}${otherKeys}${keyboards.join("")}`;
    },
    leave() {
      return [
        isSynchronized ? `\x1b[?${TRANSIENT}l` : "",
        keyboards.length === 0 ? "" : `\x1b[<${keyboards.length}u`,
        otherKeys === "" ? "" : "\x1b[>4m",
        cursorStyle === "" ? "" : "\x1b[0 q",
        keypad ? "\x1b>" : "",
        // Setting the margins moves the cursor.
        hasMargins ? "\x1b7\x1b[r\x1b8" : "",
        privateModes(false),
        alternate === undefined ? "" : `\x1b[?${alternate}l`,
        "\x1b(B\x0f\x1b[0m",
      ].join("");
    },
  };
}
