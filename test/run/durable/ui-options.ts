// How each option of a UI message stream is tried: as a stream of the SDK's result, by the plain agent and by the durable one.

// biome-ignore lint/suspicious/noExplicitAny: options with callbacks of many types.
type Options = Record<string, any>;
export type Note = (event: string, data?: unknown) => void;

const noted = (name: string) => (note: Note) => ({ [name]: (event: unknown) => note(name, event) });

/** By the name of the option in the SDK's types. */
export const UI_OPTIONS: Readonly<Record<string, (note: Note) => Options>> = {
  originalMessages: (note) => ({
    originalMessages: [
      { id: "u1", role: "user", parts: [{ type: "text", text: "go" }] },
      { id: "a1", role: "assistant", parts: [{ type: "text", text: "so far" }] },
    ],
    onEnd: ({ messages }: Options) => note("messages", messages),
  }),
  generateMessageId: () => ({ generateMessageId: () => "chosen" }),
  onStepEnd: noted("onStepEnd"),
  onStepFinish: noted("onStepFinish"),
  onEnd: noted("onEnd"),
  onFinish: noted("onFinish"),
  onUIMessageStepEnd: noted("onUIMessageStepEnd"),
  messageMetadata: () => ({ messageMetadata: ({ part }: Options) => ({ of: part.type }) }),
  sendReasoning: () => ({ sendReasoning: false }),
  sendSources: () => ({ sendSources: true }),
  sendFinish: () => ({ sendFinish: false }),
  sendStart: () => ({ sendStart: false }),
  onError: () => ({ onError: (error: Error) => `masked ${error.message}` }),
  // Of a response.
  keepAliveMs: () => ({ keepAliveMs: 60_000 }),
  consumeSseStream: (note) => ({
    consumeSseStream: async ({ stream }: Options) => {
      const texts = await Array.fromAsync(stream as ReadableStream<string>);
      note("copy", texts.length > 0);
    },
  }),
};
