// The four APIs that the agents speak: each reads a request into a conversation, and writes an answer plain or as a stream.
import { randomUUID } from "node:crypto";
import type { Answer, Conversation, Offered } from "./job.ts";

/** Requests and responses of the providers' APIs. */
// biome-ignore lint/suspicious/noExplicitAny: the shape depends on the client.
export type Json = any;

export interface Dialect {
  readonly name: string;
  readonly matches: (path: string) => boolean;
  readonly read: (body: Json, path: string) => Conversation;
  readonly plain: (answer: Answer, body: Json) => Json;
  readonly stream: (answer: Answer, body: Json) => string[];
  /** The body of a refusal, in the provider's format. */
  readonly error: (fault: Fault) => Json;
}

export interface Fault {
  /** 400: the conversation is too long for the model. */
  readonly status: 400 | 401 | 429 | 529;
  /** Also sent as the header `retry-after`. */
  readonly retryAfterSeconds?: number;
}

const id = (prefix: string) => `${prefix}${randomUUID().replaceAll("-", "").slice(0, 24)}`;
const textOf = (value: Json) => (typeof value === "string" ? value : JSON.stringify(value ?? ""));
const joined = (content: Json): string =>
  typeof content === "string" ? content : (content ?? []).map((part: Json) => part.text ?? "").join("\n");

/** Collects calls, results and prompts while a request is read. */
function collect() {
  const calls = new Map<string, string>();
  const results: { id: string; text: string; isError: boolean }[] = [];
  const prompts: string[] = [];
  return { calls, results, prompts };
}

const offeredTools = (tools: Json, read: (tool: Json) => [string, Json]): Offered[] =>
  (tools ?? []).map(read).map(([name, schema]: [string, Json]) => ({ name, properties: schema?.properties }));

export const anthropic: Dialect = {
  name: "anthropic",
  matches: (path) => path.endsWith("/messages"),
  read(body) {
    const found = collect();
    for (const { role, content } of body.messages ?? [])
      for (const part of typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])) {
        if (part.type === "tool_use") found.calls.set(part.id, textOf(part.input));
        else if (part.type === "tool_result")
          found.results.push({
            id: part.tool_use_id,
            text: textOf(part.content),
            isError: part.is_error === true,
          });
        else if (part.type === "text" && role !== "assistant") found.prompts.push(part.text);
      }
    return {
      ...found,
      offered: offeredTools(body.tools, (tool) => [tool.name, tool.input_schema]),
      messages: body.messages?.length ?? 0,
      isStream: body.stream === true,
      wantsJson: body.output_config?.format !== undefined || body.output_format !== undefined,
    };
  },
  plain: ({ text, call }, { model }) => ({
    ...{ id: id("msg_"), type: "message", role: "assistant", model },
    content: [
      { type: "text", text },
      ...(call === undefined
        ? []
        : [{ type: "tool_use", id: id("toolu_"), name: call.name, input: call.input }]),
    ],
    ...{ stop_reason: call === undefined ? "end_turn" : "tool_use", stop_sequence: null },
    usage: {
      input_tokens: 10,
      output_tokens: 10,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    },
  }),
  stream(answer, body) {
    const whole = this.plain(answer, body);
    const blocks = whole.content.flatMap((block: Json, index: number) => [
      block.type === "text"
        ? { type: "content_block_start", index, content_block: { type: "text", text: "" } }
        : { type: "content_block_start", index, content_block: { ...block, input: {} } },
      block.type === "text"
        ? { type: "content_block_delta", index, delta: { type: "text_delta", text: block.text } }
        : {
            type: "content_block_delta",
            index,
            delta: { type: "input_json_delta", partial_json: JSON.stringify(block.input) },
          },
      { type: "content_block_stop", index },
    ]);
    const { stop_reason } = whole;
    return [
      { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
      ...blocks,
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 10 } },
      { type: "message_stop" },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  },
  error({ status }) {
    const errors = {
      400: ["invalid_request_error", "prompt is too long: 214000 tokens > 200000 maximum"],
      401: ["authentication_error", "invalid x-api-key"],
      429: [
        "rate_limit_error",
        "This request would exceed your account's rate limit. Please try again later.",
      ],
      529: ["overloaded_error", "Overloaded"],
    } as const;
    const [type, message] = errors[status];
    return { type: "error", error: { type, message }, request_id: id("req_") };
  },
};

function openAiError({ status, retryAfterSeconds }: Fault): Json {
  const again = retryAfterSeconds === undefined ? "" : ` Please try again in ${retryAfterSeconds}s.`;
  const errors = {
    400: ["invalid_request_error", "context_length_exceeded", TOO_LONG],
    401: ["invalid_request_error", "invalid_api_key", "Incorrect API key provided: dummy."],
    429: [
      "requests",
      "rate_limit_exceeded",
      `Rate limit reached for mock on requests per min (RPM).${again}`,
    ],
    529: ["server_error", "server_error", "The server is overloaded. Please try again later."],
  } as const;
  const [type, code, message] = errors[status];
  return { error: { type, code, param: null, message } };
}

const TOO_LONG =
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 214000 tokens. Please reduce the length of the messages.";

export const responses: Dialect = {
  name: "responses",
  matches: (path) => path.endsWith("/responses"),
  read(body) {
    const found = collect();
    const input =
      typeof body.input === "string" ? [{ role: "user", content: body.input }] : (body.input ?? []);
    for (const item of input) {
      if (/_call$/.test(item.type ?? ""))
        found.calls.set(item.call_id, textOf(item.arguments ?? item.input ?? item.action));
      if (/_call_output$/.test(item.type ?? ""))
        found.results.push({ id: item.call_id, text: textOf(item.output), isError: false });
      if (item.role === "user" || item.role === "developer") found.prompts.push(joined(item.content));
    }
    return {
      ...found,
      offered: offeredTools(body.tools, (tool) => [tool.name ?? tool.type, tool.parameters]),
      messages: input.length,
      isStream: body.stream === true,
      wantsJson: body.text?.format?.type === "json_schema",
    };
  },
  plain: ({ text, call }, { model }) => ({
    ...{ id: id("resp_"), object: "response", created_at: 0, status: "completed", model },
    output: [
      {
        ...{ type: "message", id: id("msg_"), role: "assistant", status: "completed" },
        content: [{ type: "output_text", text, annotations: [] }],
      },
      ...(call === undefined
        ? []
        : [
            {
              ...{
                type: "function_call",
                id: id("fc_"),
                call_id: id("call_"),
                name: call.name,
                status: "completed",
              },
              arguments: JSON.stringify(call.input),
            },
          ]),
    ],
    usage: {
      ...{ input_tokens: 10, output_tokens: 10, total_tokens: 20 },
      ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
    },
  }),
  stream(answer, body) {
    const whole = this.plain(answer, body);
    let sequence_number = 0;
    const event = (type: string, data: Json) => {
      const text = `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...data })}\n\n`;
      sequence_number += 1;
      return text;
    };
    const start = event("response.created", {
      response: { ...whole, status: "in_progress", output: [], usage: null },
    });
    const items = whole.output.flatMap((item: Json, output_index: number) => {
      const at = { item_id: item.id, output_index };
      const added = item.type === "message" ? { content: [] } : { arguments: "" };
      const first = event("response.output_item.added", {
        output_index,
        item: { ...item, status: "in_progress", ...added },
      });
      const part = { type: "output_text", text: "", annotations: [] };
      const text = item.content?.[0].text;
      const middle =
        item.type === "message"
          ? [
              event("response.content_part.added", { ...at, content_index: 0, part }),
              event("response.output_text.delta", { ...at, content_index: 0, delta: text }),
              event("response.output_text.done", { ...at, content_index: 0, text }),
              event("response.content_part.done", { ...at, content_index: 0, part: { ...part, text } }),
            ]
          : [
              event("response.function_call_arguments.delta", { ...at, delta: item.arguments }),
              event("response.function_call_arguments.done", { ...at, arguments: item.arguments }),
            ];
      return [first, ...middle, event("response.output_item.done", { output_index, item })];
    });
    return [start, ...items, event("response.completed", { response: whole })];
  },
  error: openAiError,
};

export const chat: Dialect = {
  name: "chat",
  matches: (path) => path.endsWith("/chat/completions"),
  read(body) {
    const found = collect();
    for (const { role, content, tool_calls, tool_call_id } of body.messages ?? []) {
      for (const call of tool_calls ?? []) found.calls.set(call.id, textOf(call.function?.arguments));
      if (role === "tool") found.results.push({ id: tool_call_id, text: textOf(content), isError: false });
      if (role === "user") found.prompts.push(joined(content));
    }
    return {
      ...found,
      offered: offeredTools(body.tools, (tool) => [tool.function?.name, tool.function?.parameters]),
      messages: body.messages?.length ?? 0,
      isStream: body.stream === true,
      wantsJson: body.response_format !== undefined && body.response_format.type !== "text",
    };
  },
  plain({ text, call }, { model }) {
    const made = call && { name: call.name, arguments: JSON.stringify(call.input) };
    const tool_calls = made && [{ id: id("call_"), type: "function", function: made }];
    const message = { role: "assistant", content: text, ...(tool_calls && { tool_calls }) };
    return {
      ...{ id: id("chatcmpl-"), object: "chat.completion", created: 0, model },
      choices: [{ index: 0, message, finish_reason: call === undefined ? "stop" : "tool_calls" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    };
  },
  stream(answer, body) {
    const { choices, usage, ...whole } = this.plain(answer, body);
    const { message, finish_reason } = choices[0];
    const head = { ...whole, object: "chat.completion.chunk" };
    const chunk = (delta: Json, finish: Json = null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const calls = (message.tool_calls ?? []).map((call: Json, index: number) =>
      chunk({ tool_calls: [{ index, ...call }] }),
    );
    const parts = [
      chunk({ role: "assistant", content: message.content }),
      ...calls,
      chunk({}, finish_reason),
      { ...head, choices: [], usage },
    ];
    return [...parts.map((part) => `data: ${JSON.stringify(part)}\n\n`), "data: [DONE]\n\n"];
  },
  error: openAiError,
};

export const gemini: Dialect = {
  name: "gemini",
  matches: (path) => /:(stream)?generateContent$/i.test(path),
  read(body, path) {
    const found = collect();
    // Calls without an id are matched with results in their order.
    const open: string[] = [];
    for (const { role, parts } of body.contents ?? [])
      for (const part of parts ?? []) {
        if (part.functionCall) {
          const call = part.functionCall.id ?? `call-${found.calls.size}`;
          found.calls.set(call, textOf(part.functionCall.args));
          open.push(call);
        } else if (part.functionResponse) {
          const { id: named, response = {} } = part.functionResponse;
          const call = named && found.calls.has(named) ? named : open[0];
          open.splice(open.indexOf(call), 1);
          const text = textOf(response.output ?? response);
          found.results.push({ id: call, text, isError: response.error !== undefined });
        } else if (part.text && role === "user") found.prompts.push(part.text);
      }
    const declared = (body.tools ?? []).flatMap((tool: Json) => tool.functionDeclarations ?? []);
    return {
      ...found,
      offered: offeredTools(declared, (tool) => [tool.name, tool.parametersJsonSchema ?? tool.parameters]),
      messages: body.contents?.length ?? 0,
      isStream: path.includes(":stream"),
      wantsJson: body.generationConfig?.responseMimeType === "application/json",
    };
  },
  plain: ({ text, call }) => ({
    candidates: [
      {
        index: 0,
        content: {
          role: "model",
          parts: [
            { text },
            ...(call === undefined
              ? []
              : [{ functionCall: { id: id("call-"), name: call.name, args: call.input } }]),
          ],
        },
        finishReason: "STOP",
      },
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  }),
  stream(answer, body) {
    return [`data: ${JSON.stringify(this.plain(answer, body))}\r\n\r\n`];
  },
  error({ status, retryAfterSeconds }) {
    const errors = {
      400: [
        "INVALID_ARGUMENT",
        "The input token count (1214000) exceeds the maximum number of tokens allowed (1048576).",
      ],
      401: ["UNAUTHENTICATED", "API key not valid. Please pass a valid API key."],
      429: ["RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."],
      529: ["UNAVAILABLE", "The model is overloaded. Please try again later."],
    } as const;
    const [name, message] = errors[status];
    const details =
      retryAfterSeconds === undefined
        ? []
        : [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfterSeconds}s` }];
    return { error: { code: status, status: name, message, details } };
  },
};

export const DIALECTS: readonly Dialect[] = [anthropic, responses, chat, gemini];
