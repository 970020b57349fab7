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

/** The parameters that a function takes apart. Throws if there is no such function. */
export function parametersOf(types: string, name: string): string[] {
  const from = types.indexOf(`declare function ${name}<`);
  if (from < 0) throw new Error(`the SDK has no function ${name}`);
  const pattern = types.slice(types.indexOf("({", from) + 1, types.indexOf("}:", from));
  return [...pattern.matchAll(/[{,]\s*(\w+)(?=[\s,:=]|$)/g)].map((found) => found[1]!);
}

/** The types of the parts of a stream. */
export function streamPartsOf(types: string): string[] {
  const union = /^type TextStreamPart<.*$/m.exec(types)?.[0] ?? "";
  const names = [...union.matchAll(/\| (\w+)|= (\w+)/g)].map((found) => found[1] ?? found[2]!);
  return names
    .filter((name) => name !== "ToolSet$1")
    .flatMap((name) => {
      const block = types.slice(types.search(new RegExp(`^type ${name}\\b`, "m"))).slice(0, 300);
      return /type: '([\w-]+)'/.exec(block)?.[1] ?? /type: "([\w-]+)"/.exec(block)?.[1] ?? [];
    });
}
