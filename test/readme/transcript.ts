// The README as a script. Its ```console blocks are transcripts: lines that start with `$ ` are typed into one shell in
// order, and the lines below each are its output. A block after a line that ends with a file name and a colon ("Save it
// as `agent.sh`:") is that file. Other ```sh blocks are commands that must succeed; their output is ignored. So
// every command of the README runs, and every output in it is real.

export interface Typed {
  readonly command: string;
  readonly output: string;
}

export type Block =
  | { readonly kind: "prose"; readonly text: string }
  | { readonly kind: "file"; readonly language: string; readonly name: string; readonly text: string }
  | { readonly kind: "commands"; readonly text: string }
  | { readonly kind: "console"; readonly typed: readonly Typed[] };

const FENCE = /^```(?<language>\w+)\n(?<body>.*?)^```\n/gms;
const FILE_NAME = /`(?<name>[~\w./-]+)`:\n\n$/;

export function parseReadme(text: string): Block[] {
  const blocks: Block[] = [];
  let end = 0;
  for (const match of text.matchAll(FENCE)) {
    const { language = "", body = "" } = match.groups!;
    const prose = text.slice(end, match.index);
    const block = parseBlock(language, body, FILE_NAME.exec(prose)?.groups?.name);
    if (block === undefined) continue;
    if (prose !== "") blocks.push({ kind: "prose", text: prose });
    blocks.push(block);
    end = match.index + match[0].length;
  }
  if (end < text.length) blocks.push({ kind: "prose", text: text.slice(end) });
  return blocks;
}

function parseBlock(language: string, body: string, name: string | undefined): Block | undefined {
  if (language === "console") return { kind: "console", typed: parseTyped(body) };
  if (name !== undefined) return { kind: "file", language, name, text: body };
  return language === "sh" ? { kind: "commands", text: body } : undefined;
}

function parseTyped(body: string): Typed[] {
  const [before, ...typed] = body.split(/^\$ /m);
  if (before !== "") throw new Error(`a transcript must start with a command, not with: ${before}`);
  return typed.map((each) => {
    const line = each.indexOf("\n");
    return { command: each.slice(0, line), output: each.slice(line + 1) };
  });
}

export function formatReadme(blocks: readonly Block[]): string {
  return blocks
    .map((block) => {
      if (block.kind === "prose") return block.text;
      if (block.kind === "commands") return `\`\`\`sh\n${block.text}\`\`\`\n`;
      if (block.kind === "file") return `\`\`\`${block.language}\n${block.text}\`\`\`\n`;
      const typed = block.typed.map(({ command, output }) => `$ ${command}\n${output}`).join("");
      return `\`\`\`console\n${typed}\`\`\`\n`;
    })
    .join("");
}

/** Replaces what differs between runs and machines with placeholders. */
export function withoutVariation(output: string): string {
  return (
    output
      .replaceAll(/\d{8}-\d{6}-[0-9a-z]{6}/g, "<checkpoint>")
      .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?/g, "<time>")
      .replaceAll(/\b\d\d:\d\d:\d\d\b/g, "<clock>")
      .replaceAll(/\b[0-9a-f]{7,40}\b/g, "<hash>")
      // How many chapters a life finishes depends on the load of the machine.
      .replaceAll(/by life \d+/g, "by life <number>")
      .replaceAll(/(?:\b\d+ min )?\b\d+(?:\.\d+)? ?(?:ms|s|seconds?|min)\b|less than a second/g, "<duration>")
      .replaceAll(/\b\d+(?:\.\d+)? ?(?:B|kB|KB|KiB|MB|MiB|bytes)\b/g, "<size>")
      .replaceAll(/\b(process|pid|in|keeping) \d+\b/g, "$1 <number>")
      .replaceAll(/[ \t]+/g, " ")
      // On a busy machine the agent pauses for longer than quiet_seconds, and the pit takes live points.
      .replaceAll(/^(?:<checkpoint> <duration> live |\+\d+ live points ).*\n/gm, "")
  );
}
