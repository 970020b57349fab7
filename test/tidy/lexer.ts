// Just enough of TypeScript's grammar to tell code from comments and text, line by line. Lengths and line breaks are
// kept, so that a place in the result is a place in the source.

export interface Masked {
  /** Comments blanked; strings as they are. */
  readonly withoutComments: string;
  /** Comments, and what stands in strings, templates and regular expressions, blanked. */
  readonly code: string;
}

/** After one of these, or at the start, a slash begins a regular expression and not a division. */
const BEFORE_REGEX = /(?:[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|await|yield|void|delete))\s*$/;

export function mask(source: string): Masked {
  const withoutComments = [...source];
  const code = [...source];
  const blank = (layer: string[], from: number, to: number) => {
    for (let i = from; i < to; i += 1) if (layer[i] !== "\n") layer[i] = " ";
  };
  // Depths of braces at which a template's `${` was opened.
  const templates: number[] = [];
  let depth = 0;
  let at = 0;
  const text = [...source];

  const endOfQuoted = (from: number, quote: string): number => {
    let i = from + 1;
    while (i < text.length && text[i] !== quote && text[i] !== "\n") i += text[i] === "\\" ? 2 : 1;
    return Math.min(i + 1, text.length);
  };
  const endOfRegex = (from: number): number => {
    let i = from + 1;
    let inClass = false;
    while (i < text.length && (text[i] !== "/" || inClass) && text[i] !== "\n") {
      if (text[i] === "[") inClass = true;
      if (text[i] === "]") inClass = false;
      i += text[i] === "\\" ? 2 : 1;
    }
    return Math.min(i + 1, text.length);
  };
  /** Blanks a template's text from `from` (just after a backtick or a closing brace) to its next hole or its end. */
  const passTemplate = (from: number): number => {
    let i = from;
    while (i < text.length && text[i] !== "`" && !(text[i] === "$" && text[i + 1] === "{")) {
      i += text[i] === "\\" ? 2 : 1;
    }
    blank(code, from, Math.min(i, text.length));
    if (text[i] !== "$") return i + 1;
    templates.push(depth);
    depth += 1;
    return i + 2;
  };
  const codeBefore = (index: number): string => code.slice(Math.max(0, index - 40), index).join("");

  while (at < text.length) {
    const character = text[at];
    const next = text[at + 1];
    if (character === "/" && (next === "/" || next === "*")) {
      let end = at + 2;
      if (next === "/") while (end < text.length && text[end] !== "\n") end += 1;
      else {
        while (end < text.length && !(text[end] === "*" && text[end + 1] === "/")) end += 1;
        end += 2;
      }
      blank(withoutComments, at, end);
      blank(code, at, end);
      at = end;
    } else if (character === '"' || character === "'") {
      const end = endOfQuoted(at, character);
      blank(code, at + 1, end - 1);
      at = end;
    } else if (character === "`") at = passTemplate(at + 1);
    else if (character === "/" && (codeBefore(at).trim() === "" || BEFORE_REGEX.test(codeBefore(at)))) {
      const end = endOfRegex(at);
      blank(code, at + 1, end - 1);
      at = end;
    } else {
      if (character === "{") depth += 1;
      if (character === "}") {
        depth -= 1;
        if (templates.at(-1) === depth) {
          templates.pop();
          at = passTemplate(at + 1);
          continue;
        }
      }
      at += 1;
    }
  }
  return { withoutComments: withoutComments.join(""), code: code.join("") };
}
