// What the profiles of fake agents share: reading options, and hooks in Claude's schema.
import type { Hook } from "./profile.ts";

export interface CommandHooks {
  readonly hooks?: Readonly<
    Record<
      string,
      readonly { readonly matcher?: string; readonly hooks: readonly { readonly command: string }[] }[]
    >
  >;
}

/** The values of an option, given as `--option VALUE` or `--option=VALUE`. */
export function optionValues(args: readonly string[], ...names: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    if (names.includes(arg)) return args[index + 1] === undefined ? [] : [args[index + 1]!];
    const name = names.find((each) => each.startsWith("--") && arg.startsWith(`${each}=`));
    return name === undefined ? [] : [arg.slice(name.length + 1)];
  });
}

/** Words that are neither options nor their values. */
export function positional(
  args: readonly string[],
  withValue: readonly string[],
  many: readonly string[] = [],
): string[] {
  const words: string[] = [];
  let taking = "";
  for (const arg of args) {
    if (withValue.includes(taking)) taking = "";
    else if (arg.startsWith("-")) taking = arg;
    else if (!many.includes(taking)) words.push(arg);
  }
  return words;
}

export function commandHooks(documents: readonly CommandHooks[]): Readonly<Record<string, Hook[]>> {
  const found: Record<string, Hook[]> = {};
  for (const { hooks = {} } of documents)
    for (const [event, entries] of Object.entries(hooks))
      for (const { matcher, hooks: commands } of entries)
        found[event] = [
          ...(found[event] ?? []),
          ...commands.map(({ command }) => ({ ...(matcher !== undefined && { matcher }), command })),
        ];
  return found;
}
