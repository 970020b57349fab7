// The keys that detach a viewer: parsing `--detach-keys`, and finding them in what is typed. Programs can ask a terminal to
// encode keys in other ways (kitty's keyboard protocol, xterm's modifyOtherKeys), so the same key may arrive in three
// forms. Keys inside a bracketed paste are text. Pure: no I/O.

export interface TypedKeys {
  /** What goes to the agent. */
  readonly forward: Buffer;
  readonly isDetach: boolean;
}

const CONTROL_BIT = 0x1f;
const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";

/** Key codes from a text such as `ctrl-\` or `ctrl-p,ctrl-q`; undefined when it names no keys. */
export function parseDetachKeys(text: string): readonly number[] | undefined {
  const keys = text.split(",").map((name) => {
    const [, control] = /^ctrl-([a-z@[\\\]^_])$/i.exec(name) ?? [];
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) & CONTROL_BIT;
    return /^[\x21-\x7e]$/.test(name) ? name.charCodeAt(0) : -1;
  });
  return keys.includes(-1) ? undefined : keys;
}

/** For people: Ctrl-\. */
export function describeDetachKeys(text: string): string {
  return text
    .split(",")
    .map((key) => key.replace(/^ctrl-(.)$/i, (_, letter: string) => `Ctrl-${letter.toUpperCase()}`))
    .join(" ");
}

/** Takes what is typed, chunk by chunk. A key that may begin the sequence is held back until the next one decides. */
export function createDetachMatcher(keys: readonly number[]): (chunk: Buffer) => TypedKeys {
  let held: string[] = [];
  let isPasting = false;
  return (chunk) => {
    let forward = "";
    for (const token of tokens(chunk.toString("latin1"))) {
      if (token === PASTE_START || token === PASTE_END) isPasting = token === PASTE_START;
      if (!isPasting && keyOf(token) !== keys[held.length] && held.length > 0) {
        forward += held.join("");
        held = [];
      }
      if (isPasting || keyOf(token) !== keys[held.length]) {
        forward += token;
        continue;
      }
      held.push(token);
      if (held.length === keys.length) return { forward: Buffer.from(forward, "latin1"), isDetach: true };
    }
    return { forward: Buffer.from(forward, "latin1"), isDetach: false };
  };
}

/** Sequences that encode one key, or single bytes. */
function tokens(text: string): string[] {
  return text.match(/\x1b\[[\d;:]*[u~]|[\s\S]/g) ?? [];
}

const CONTROL = 4;
/** Caps lock and num lock. */
const LOCKS = 64 | 128;
const RELEASE = 3;

/** The byte that the key has without a keyboard protocol; undefined for other keys. */
export function keyOf(token: string): number | undefined {
  if (token.length === 1) return token.charCodeAt(0);
  const [, code, modifiers, event] =
    /^\x1b\[(\d+)(?::\d*)*(?:;(\d+)(?::(\d+))?)?(?:;[\d:]*)?u$/.exec(token) ?? otherKey(token);
  if (code === undefined || Number(event) === RELEASE) return undefined;
  const held = (Number(modifiers ?? 1) - 1) & ~LOCKS;
  if (held === 0) return Number(code);
  return held === CONTROL
    ? String.fromCharCode(Number(code)).toUpperCase().charCodeAt(0) & CONTROL_BIT
    : undefined;
}

/** modifyOtherKeys has the modifiers first. */
function otherKey(token: string): string[] {
  const [, modifiers, code] = /^\x1b\[27;(\d+);(\d+)~$/.exec(token) ?? [];
  return code === undefined ? [] : ["", code, modifiers!];
}

const INTERRUPTS: Readonly<Record<number, "SIGINT" | "SIGQUIT">> = { 3: "SIGINT", 28: "SIGQUIT" };
/** Longer input is a paste, which is not searched. */
const TYPED_BYTES = 1024;

/** The signal that a terminal sends for one of these keys: Ctrl-C or Ctrl-\. */
export function typedInterrupt(chunk: Buffer): "SIGINT" | "SIGQUIT" | undefined {
  if (chunk.length > TYPED_BYTES) return undefined;
  for (const token of tokens(chunk.toString("latin1"))) {
    const signal = INTERRUPTS[keyOf(token) ?? 0];
    if (signal !== undefined) return signal;
  }
  return undefined;
}

const REPORTS =
  /^(?:\x1b\[[?>]?[\d;]*[cnR]|\x1b\[\?[\d;]*(?:\$y|u)|\x1b\[[IO]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\)+$/;

/** Whether the terminal, not the user, sent this: a reply to a query of the agent, or a focus event. */
export function isReport(chunk: Buffer): boolean {
  return chunk[0] === 0x1b && chunk.length <= TYPED_BYTES && REPORTS.test(chunk.toString("latin1"));
}
