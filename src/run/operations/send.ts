// Puts messages into the inbox of a run, from any process, even before a tool waits for them.
import { LazarusError } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import { type RunLog, requireHead, sendMessage } from "../log/run-log.ts";
import { checkKey } from "./check-key.ts";

/** The name of messages that the model sees; others are for `waitFor`. */
export const MESSAGE = "message";

/** The name and id of a message. */
export interface SendOptions {
  /** Default: the model sees the message before its next step. With a name, it is for a tool that waits for it. */
  readonly name?: string | undefined;
  /** Chosen by the sender: a second message with the same id is ignored. Default: a new id. */
  readonly id?: string | undefined;
}

/** Sends a message to a run. Throws RUN_UNKNOWN, or RUN_ENDED when it takes no more messages. */
export async function sendToRun(
  log: RunLog,
  runId: string,
  message: unknown,
  { name = MESSAGE, id = randomText(log.machine.ids, 16) }: SendOptions = {},
): Promise<{ readonly id: string; readonly verdict: "accepted" | "duplicate" }> {
  const value = name === MESSAGE ? userMessage(message) : message;
  checkKey(log, await requireHead(log, runId));
  const verdict = await sendMessage(log, runId, { id, name, value });
  if (verdict === "accepted" || verdict === "duplicate") return { id, verdict };
  throw new LazarusError("RUN_ENDED", `run ${runId} has ended and takes no more messages`, {
    hint: `lazarus runs show ${runId}`,
  });
}

/** What the model can be told. Anything else would end the run when it is delivered. */
function userMessage(message: unknown): unknown {
  if (typeof message === "string") return { role: "user", content: message };
  if (isObject(message) && message.role === "user") {
    const { content } = message;
    if (typeof content === "string" || (Array.isArray(content) && content.every(isPart))) return message;
  }
  throw new LazarusError(
    "USAGE",
    'a message for the model is a text or { role: "user", content }; this is neither',
    { hint: "give a name if it is for a tool that waits for it" },
  );
}

function isPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  switch (part.type) {
    case "text":
      return typeof part.text === "string";
    case "image":
      return part.image != null;
    case "file":
      return part.data != null && typeof part.mediaType === "string";
    default:
      return false;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
