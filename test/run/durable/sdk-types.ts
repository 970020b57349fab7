// Reads names of fields from the type declarations of the SDK.

/** The fields of the first block that starts with these words. Throws if there is none. */
export function fieldsOf(types: string, start: string): string[] {
  const from = types.indexOf(start);
  if (from < 0) throw new Error(`the SDK has no ${start}`);
  const lines = types.slice(from).split("\n").slice(1);
  const block = lines.slice(
    0,
    lines.findIndex((line) => /^\}/.test(line)),
  );
  return block.flatMap((line) => /^ {2}(?:readonly )?(\w+)\??[:(<]/.exec(line)?.[1] ?? []);
}
