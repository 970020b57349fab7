// A mock model on loopback for real agent CLIs, with all four APIs; the path of a request shows which one it is.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { DIALECTS, type Fault, type Json } from "./dialects.ts";
import { type JobOptions, nextTurn, type Turn } from "./job.ts";

export interface ModelRequest {
  readonly api: string;
  readonly next: Turn["next"];
  readonly isTold: boolean;
  readonly messages: number;
  /** The newest text that is not from the model. */
  readonly prompt: string;
  readonly status: number;
  readonly atMs: number;
  /** It knows the tools of our MCP server: as tools, or by name in a list from which it can load them. */
  readonly hasTools: boolean;
}

export interface MockModel extends AsyncDisposable {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  /** All requests so far, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Until it is called again with null, every answer at this chapter or later is this refusal. */
  fail(fault: (Fault & { readonly at: number }) | null): void;
  /** The answer at this chapter is not sent until this is called again with null. */
  think(at: number | null): void;
}

export async function startMockModel(options: JobOptions): Promise<MockModel> {
  const requests: ModelRequest[] = [];
  let fault: (Fault & { readonly at: number }) | null = null;
  let thoughtful: { readonly at: number; readonly ended: PromiseWithResolvers<void> } | null = null;

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = new URL(request.url ?? "/", "http://mock").pathname;
    const dialect = DIALECTS.find(({ matches }) => matches(path));
    if (request.method !== "POST" || dialect === undefined) return answerAside(path, request, response);
    const text = Buffer.concat(chunks).toString();
    const body: Json = JSON.parse(text || "{}");
    const conversation = dialect.read(body, path);
    const { next, isTold, answer: said } = nextTurn(conversation, options);
    const refusal =
      fault !== null && (next === "done" || (next !== "side" && next >= fault.at)) ? fault : null;
    const status = refusal?.status ?? 200;
    const prompt = conversation.prompts.at(-1) ?? "";
    requests.push({
      api: dialect.name,
      next,
      isTold,
      messages: conversation.messages,
      prompt,
      status,
      atMs: Date.now(),
      hasTools: /lazarus[_-]+list_checkpoints|"mcp__lazarus".*"list_checkpoints"/s.test(text),
    });
    if (options.thinkMs !== undefined && next !== "side") await sleep(options.thinkMs);
    if (thoughtful?.at === next) await thoughtful.ended.promise;
    if (refusal !== null) return sendJson(response, status, dialect.error(refusal), headersOf(refusal));
    const spoken = next === "side" && conversation.wantsJson ? { text: SIDE_JSON } : said;
    if (!conversation.isStream) return sendJson(response, 200, dialect.plain(spoken, body));
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const part of dialect.stream(spoken, body)) response.write(part);
    response.end();
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      process.stderr.write(`mock model: ${error}\n`);
      response.destroy();
    });
  });
  server.keepAliveTimeout = 1000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail(next) {
      fault = next;
    },
    think(at) {
      thoughtful?.ended.resolve();
      thoughtful = at === null ? null : { at, ended: Promise.withResolvers<void>() };
    },
    async [Symbol.asyncDispose]() {
      thoughtful?.ended.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What the usual small questions in JSON accept: title, topic, complexity of a task, next speaker. */
const SIDE_JSON = JSON.stringify({
  ...{ title: "Writing a book", isNewTopic: false, reasoning: "simple", model_choice: "flash" },
  ...{ complexity_reasoning: "simple", complexity_score: 1, next_speaker: "user" },
});

function headersOf({ retryAfterSeconds }: Fault): Record<string, string> {
  return retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
}

function sendJson(response: ServerResponse, status: number, value: unknown, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

/** Token counts, model lists, and an empty response for the rest. */
function answerAside(path: string, request: IncomingMessage, response: ServerResponse): void {
  const models = [{ id: "mock", object: "model", type: "model", display_name: "mock" }];
  if (/count_?tokens/i.test(path)) sendJson(response, 200, { input_tokens: 10, totalTokens: 10 });
  else if (path.endsWith("/models")) sendJson(response, 200, { object: "list", models: [], data: models });
  else sendJson(response, request.method === "POST" ? 200 : 404, {});
}
