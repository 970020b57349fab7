// Splits a shell line into words if it is one simple command that means the same without a shell: no expansion, pipe,
// redirection, list or comment. Pure.

export interface SimpleCommand {
  /** `A=1 B="$HOME"` in front of the command, as written: a shell has to evaluate them. */
  readonly assignments: string;
  readonly words: readonly string[];
}

const ASSIGNMENT = /^[A-Za-z_]\w*=/;
/** Characters with a special meaning outside quotes. */
const SPECIAL = /[$`|&;<>()*?[\]{}~#!\n]/;

/** Undefined when the line is anything but one simple command. */
export function parseSimpleCommand(line: string): SimpleCommand | undefined {
  const tokens = tokenize(line.trim());
  if (tokens === undefined) return undefined;
  const first = tokens.findIndex(({ raw }) => !ASSIGNMENT.test(raw));
  if (first === -1) return undefined;
  const rest = tokens.slice(first);
  const command = rest[0]!.raw === "exec" ? rest.slice(1) : rest;
  if (command.length === 0 || command.some(({ value }) => value === undefined)) return undefined;
  return {
    assignments: tokens
      .slice(0, first)
      .map(({ raw }) => raw)
      .join(" "),
    words: command.map(({ value }) => value!),
  };
}

interface Token {
  readonly raw: string;
  /** Undefined when a shell would have to expand it. */
  readonly value: string | undefined;
}

/** Undefined for an operator outside quotes, or an open quote. */
function tokenize(line: string): Token[] | undefined {
  const tokens: Token[] = [];
  const part = /(\s+)|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)/y;
  let raw = "";
  let value: string | undefined = "";
  const finish = () => {
    if (raw !== "") tokens.push({ raw, value });
    raw = "";
    value = "";
  };
  while (part.lastIndex < line.length) {
    const match = part.exec(line);
    if (match === null) return undefined;
    const [all, space, single, double, escaped, plain] = match;
    if (space !== undefined) {
      if (space.includes("\n")) return undefined;
      finish();
      continue;
    }
    raw += all;
    const piece = single ?? escaped ?? unquoted(double, plain);
    if (piece === undefined) {
      // An assignment keeps its text, so an expansion in it is fine; a list or a pipe never is.
      if (plain !== undefined && /[|&;<>()`]/.test(plain)) return undefined;
      value = undefined;
    } else if (value !== undefined) value += piece;
  }
  finish();
  return tokens;
}

function unquoted(double: string | undefined, plain: string | undefined): string | undefined {
  if (plain !== undefined) return SPECIAL.test(plain) ? undefined : plain;
  return /(?:^|[^\\])[$`]/.test(double!) ? undefined : double!.replaceAll(/\\([$`"\\\n])/g, "$1");
}
