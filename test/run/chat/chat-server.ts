// Starts the chat server in a child process, sends it the requests of a page, and kills it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { ARM, bundleProgram } from "../../bundle.ts";

const SOURCE = join(import.meta.dirname, "paced-server.ts");
const PROGRAM = await bundleProgram(SOURCE);
// The server reads its page from its own directory.
const PAGE = join(import.meta.dirname, "..", "..", "..", "examples", "chat", "page.html");
if (PROGRAM !== SOURCE) copyFileSync(PAGE, join(dirname(PROGRAM), "page.html"));
export const EVERYTHING = 1_000_000;

export const QUESTION: UIMessage = {
  id: "question",
  role: "user",
  parts: [{ type: "text", text: "Tell Bob that the delivery is late." }],
};

export class ChatServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly url: string;

  private constructor(child: ChildProcess, closed: Promise<unknown>, url: string) {
    this.#child = child;
    this.#closed = closed;
    this.url = url;
  }

  /** Starts it; `fragments` is how much its model may stream. */
  static async start(
    directory: string,
    fragments: number,
    { crashAt, port = 0 }: { crashAt?: string; port?: number } = {},
  ): Promise<ChatServer> {
    const arm = crashAt === undefined ? [] : ["--import", ARM];
    const env = { ...process.env, ...(crashAt === undefined ? {} : { LAZARUS_CRASH_AT: crashAt }) };
    const args = ["--disable-warning=ExperimentalWarning", ...arm, PROGRAM, directory, String(port)];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"], env });
    child.stdin!.on("error", () => {});
    const closed = once(child, "close");
    child.stdin!.write(`${fragments}\n`);
    const line = once(createInterface({ input: child.stdout! }), "line");
    const first = await Promise.race([line, closed.then(() => undefined)]);
    // A crash point in recovery may come before the port is known.
    const url = first === undefined ? "http://127.0.0.1:1" : `http://127.0.0.1:${first[0]}`;
    return new ChatServer(child, closed, url);
  }

  allow(fragments: number): void {
    this.#child.stdin!.write(`${fragments}\n`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  post(id: string, messages: readonly UIMessage[]): Promise<Response> {
    return fetch(`${this.url}/api/chat`, { method: "POST", body: JSON.stringify({ id, messages }) });
  }

  follow(id: string): Promise<Response> {
    return fetch(`${this.url}/api/chat/${id}/stream`);
  }
}

/** The chunks of a response until it ends or breaks, or until `enough` returns true. */
export async function readChunks(
  response: Response,
  enough: (chunks: readonly UIMessageChunk[]) => boolean = () => false,
): Promise<{ chunks: UIMessageChunk[]; isWhole: boolean }> {
  const chunks: UIMessageChunk[] = [];
  let rest = "";
  try {
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === "data: [DONE]") return { chunks, isWhole: true };
        if (line.startsWith("data: ")) chunks.push(JSON.parse(line.slice(6)));
        if (enough(chunks)) return { chunks, isWhole: false };
      }
    }
  } catch {
    // The server was killed.
  }
  return { chunks, isWhole: false };
}

export function textOf(chunks: readonly UIMessageChunk[]): string {
  return chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");
}

/** Joins adjacent deltas: how a text was split does not matter. */
export function compact(chunks: readonly UIMessageChunk[]): UIMessageChunk[] {
  const joined: UIMessageChunk[] = [];
  for (const chunk of chunks) {
    const last = joined.at(-1);
    if (chunk.type === "text-delta" && last?.type === "text-delta") {
      joined[joined.length - 1] = { ...last, delta: last.delta + chunk.delta };
    } else joined.push(chunk);
  }
  return joined;
}

export async function messageOf(chunks: readonly UIMessageChunk[]): Promise<UIMessage> {
  const stream = ReadableStream.from(chunks) as ReadableStream<UIMessageChunk>;
  return (await Array.fromAsync(readUIMessageStream({ stream }))).at(-1)!;
}

/** The message with its requests approved. */
export function approved(message: UIMessage): UIMessage {
  const parts = message.parts.map((part) =>
    "approval" in part && part.approval !== undefined
      ? { ...part, state: "approval-responded", approval: { id: part.approval.id, approved: true } }
      : part,
  );
  return { ...message, parts } as UIMessage;
}

export function outboxOf(directory: string): string[] {
  const path = join(directory, "outbox.jsonl");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}
