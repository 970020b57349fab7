// Asks the running pit to take a checkpoint: it has the watch and a warm process. The answer is undefined whenever the pit is not the
// right one to ask or cannot do it now (no pit, busy, refuses, another version or configuration); then the caller does it
// itself, and reports any error of its own. Imports nothing of the checkpoints: the command starts as fast as Node.
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { MissionId } from "../cell/mission-id.ts";
import { addressPath, callerKey } from "../http/caller.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import type { CliContext } from "./context.ts";

/** A pit that does not answer within this time is stopped or too busy. It has received nothing to act on by then. */
const CONTINUE_MS = 1000;
/** After this time the command walks the cell itself; the vault's lock tells it who is at work. */
const ANSWER_MS = 60_000;

export interface CheckpointRequest {
  readonly reason: string;
  readonly message: string | null;
  readonly agent: string | null;
}

export async function askPit(
  context: CliContext,
  mission: MissionId,
  checkpoint: CheckpointRequest,
): Promise<JsonObject | undefined> {
  const { config } = context.config;
  const caller = callerKey(context.config, context.surroundings.env);
  const address = parseObject(readText(addressPath(config.run_dir)));
  const token = readText(`${config.run_dir}/token`)?.trim();
  if (typeof address?.socket !== "string" || address.caller !== caller || !token) return undefined;
  return await post({
    socketPath: address.socket,
    path: `/v1/missions/${mission}/checkpoints`,
    token,
    body: JSON.stringify({ ...checkpoint, caller, only_watched: true }),
  });
}

interface Post {
  readonly socketPath: string;
  readonly path: string;
  readonly token: string;
  readonly body: string;
}

/** The answer; undefined for a failure of any kind. */
async function post({ socketPath, path, token, body }: Post): Promise<JsonObject | undefined> {
  const { promise, resolve } = Promise.withResolvers<JsonObject | undefined>();
  const headers = {
    host: "localhost",
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    expect: "100-continue",
  };
  const outgoing = request({ socketPath, path, method: "POST", headers, agent: false });
  const waitAtMost = (ms: number) => setTimeout(() => outgoing.destroy(new Error("no answer")), ms);
  let timer = waitAtMost(CONTINUE_MS);
  outgoing.on("continue", () => {
    clearTimeout(timer);
    timer = waitAtMost(ANSWER_MS);
    outgoing.end(body);
  });
  outgoing.on("response", (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      text += chunk;
    });
    response.on("error", () => resolve(undefined));
    response.on("end", () => resolve(response.statusCode === 200 ? parseObject(text) : undefined));
    response.on("close", () => clearTimeout(timer));
  });
  outgoing.on("error", () => resolve(undefined));
  outgoing.on("close", () => clearTimeout(timer));
  outgoing.flushHeaders();
  const answer = await promise;
  outgoing.destroy();
  return answer;
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function parseObject(text: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
