// The README as a script. Its ```console blocks are transcripts: `$ ` lines are typed into one shell, from the first to
// the last, and the lines below them are what that printed. Blocks with a file name after their language (```sh
// agent.sh) are files of the reader. So every command of the README is run, and every output in it is real.

export interface Typed {
  readonly command: string;
  readonly output: string;
}

export type Block =
  | { readonly kind: "prose"; readonly text: string }
  | { readonly kind: "file"; readonly language: string; readonly name: string; readonly text: string }
  | { readonly kind: "console"; readonly typed: readonly Typed[] };

const FENCE = /^```(?<language>\w+)?(?: (?<name>[\w.-]+))?\n(?<body>.*?)^```\n/gms;

export function parseReadme(text: string): Block[] {
  const blocks: Block[] = [];
  let end = 0;
  const prose = (until: number) => {
    if (until > end) blocks.push({ kind: "prose", text: text.slice(end, until) });
  };
  for (const match of text.matchAll(FENCE)) {
    const { language = "", name, body = "" } = match.groups!;
    if (language !== "console" && name === undefined) continue;
    prose(match.index);
    blocks.push(
      name === undefined
        ? { kind: "console", typed: parseTyped(body) }
        : { kind: "file", language, name, text: body },
    );
    end = match.index + match[0].length;
  }
  prose(text.length);
  return blocks;
}

function parseTyped(body: string): Typed[] {
  const [before, ...typed] = body.split(/^\$ /m);
  if (before !== "") throw new Error(`a transcript begins with a command, not with: ${before}`);
  return typed.map((each) => {
    const line = each.indexOf("\n");
    return { command: each.slice(0, line), output: each.slice(line + 1) };
  });
}

export function formatReadme(blocks: readonly Block[]): string {
  return blocks
    .map((block) => {
      if (block.kind === "prose") return block.text;
      if (block.kind === "file") return `\`\`\`${block.language} ${block.name}\n${block.text}\`\`\`\n`;
      const typed = block.typed.map(({ command, output }) => `$ ${command}\n${output}`).join("");
      return `\`\`\`console\n${typed}\`\`\`\n`;
    })
    .join("");
}

/** What differs from day to day and from machine to machine gets a name; all else must be equal. */
export function withoutChance(output: string): string {
  return (
    output
      .replaceAll(/\d{8}-\d{6}-[0-9a-z]{6}/g, "<checkpoint>")
      .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?/g, "<time>")
      .replaceAll(/\b\d\d:\d\d:\d\d\b/g, "<clock>")
      .replaceAll(/\b[0-9a-f]{7,40}\b/g, "<hash>")
      // How far it came in one life is a matter of a tenth of a second.
      .replaceAll(/by life \d+/g, "by life <number>")
      .replaceAll(/(?:\b\d+ min )?\b\d+(?:\.\d+)? ?(?:ms|s|seconds?|min)\b|less than a second/g, "<duration>")
      .replaceAll(/\b\d+(?:\.\d+)? ?(?:B|kB|KB|KiB|MB|MiB|bytes)\b/g, "<size>")
      .replaceAll(/\b(process|pid|in) \d+\b/g, "$1 <number>")
      .replaceAll(/[ \t]+/g, " ")
  );
}
