// Reads the arguments of an agent's CLI into words with a role, so that an option or the prompt can be removed or replaced
// and everything else stays as the user typed it. Pure; independent of any particular CLI.

/** Which options take values. All others are flags. Short options may be joined: `-pc` is `-p -c`. */
export interface Grammar {
  /** Exactly one value. */
  readonly one: readonly string[];
  /** All words up to the next option. */
  readonly many?: readonly string[];
  /** The next word, unless it is an option. */
  readonly maybe?: readonly string[];
}

export interface Word {
  readonly text: string;
  /** `end` is the `--` after which all words are positional. */
  readonly role: "option" | "value" | "positional" | "end";
  /** The name of the option that this word is, or belongs to; empty for the other roles. */
  readonly option: string;
  /** The value in `--option=value`. */
  readonly inline?: string;
}

export function readWords(args: readonly string[], grammar: Grammar): Word[] {
  const words: Word[] = [];
  const left = args.flatMap((arg) => splitShort(arg, grammar));
  let takes = { option: "", count: 0 };
  for (const [index, text] of left.entries()) {
    if (words.some(({ role }) => role === "end")) words.push({ text, role: "positional", option: "" });
    else if (takes.count === 1 && grammar.one.includes(takes.option)) {
      words.push({ text, role: "value", option: takes.option });
      takes = { option: "", count: 0 };
    } else if (text === "--") words.push({ text, role: "end", option: "" });
    else if (isOption(text)) {
      const equals = text.startsWith("--") ? text.indexOf("=") : -1;
      const option = equals === -1 ? text : text.slice(0, equals);
      words.push({ text, role: "option", option, ...(equals !== -1 && { inline: text.slice(equals + 1) }) });
      takes = { option, count: equals === -1 ? valueCount(option, grammar, left[index + 1]) : 0 };
    } else if (takes.count > 0) {
      words.push({ text, role: "value", option: takes.option });
      takes = { ...takes, count: takes.count - 1 };
    } else words.push({ text, role: "positional", option: "" });
  }
  return words;
}

/** `-` alone is standard input. */
function isOption(text: string): boolean {
  return text.length > 1 && text.startsWith("-");
}

function valueCount(
  option: string,
  { one, many = [], maybe = [] }: Grammar,
  next: string | undefined,
): number {
  if (one.includes(option)) return 1;
  if (many.includes(option)) return Number.POSITIVE_INFINITY;
  return maybe.includes(option) && next !== undefined && !isOption(next) ? 1 : 0;
}

/** `-pc` → `-p -c`, `-mopus` → `-m opus`. */
function splitShort(arg: string, { one, many = [], maybe = [] }: Grammar): string[] {
  if (!/^-[A-Za-z]{2}/.test(arg)) return [arg];
  const words: string[] = [];
  for (let at = 1; at < arg.length; at += 1) {
    const option = `-${arg[at]}`;
    words.push(option);
    const rest = arg.slice(at + 1);
    if (rest !== "" && [...one, ...many, ...maybe].includes(option))
      return [...words, rest.replace(/^=/, "")];
    if (!/^[A-Za-z]*$/.test(rest)) return [arg];
  }
  return words;
}

export function hasOption(words: readonly Word[], ...names: readonly string[]): boolean {
  return words.some(({ role, option }) => role === "option" && names.includes(option));
}

/** The value of the last of these options; undefined when there is none or it has no value. */
export function optionValue(words: readonly Word[], ...names: readonly string[]): string | undefined {
  let value: string | undefined;
  for (const word of words) {
    if (!names.includes(word.option)) continue;
    if (word.role === "option") value = word.inline;
    else value ??= word.text;
  }
  return value;
}

export function positionals(words: readonly Word[]): string[] {
  return words.filter(({ role }) => role === "positional").map(({ text }) => text);
}

/** Options and their values, without these options and without any positional word. */
export function optionsOnly(words: readonly Word[], ...without: readonly string[]): string[] {
  return words
    .filter(({ role, option }) => (role === "option" || role === "value") && !without.includes(option))
    .map(({ text }) => text);
}

/** A text that no CLI mistakes for an option. */
export function asPrompt(text: string): string {
  return text.startsWith("-") ? ` ${text}` : text;
}

/** The prompt of a life that starts over. */
export function withNote(note: string, prompt: string | null): string {
  return asPrompt(prompt === null || prompt === "" ? note : `${note}\n\n${prompt}`);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
