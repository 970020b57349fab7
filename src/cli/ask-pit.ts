// Asks the running pit for a checkpoint: it has the watch and a warm process. The answer is undefined whenever the pit is not the
// right one to ask or cannot do it now (no pit, busy, refuses, another version or configuration); then the caller does it
// itself, and reports its own errors. Imports no checkpoint code: the command starts as fast as Node.
import { readFileSync } from "node:fs";
import { request as startRequest } from "node:http";
import type { MissionId } from "../cell/mission-id.ts";
import { addressPath, callerKey, tokenPath } from "../http/caller.ts";
import { quietly } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { VERSION } from "../platform/version.ts";
import type { CliContext } from "./context.ts";

/** How long to wait until the pit accepts the request, and then for its response. Before it accepts, it does nothing. */
interface Timeouts {
  readonly continueMs: number;
  readonly answerMs: number;
}

/** After this time the command walks the cell itself; the vault's lock then shows which process holds it. */
const FOR_CHECKPOINT: Timeouts = { continueMs: 1000, answerMs: 60_000 };
/** Short, because the agent waits. */
const FOR_LIVE_POINT: Timeouts = { continueMs: 300, answerMs: 2000 };

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
  const caller = callerKey(context.config, context.surroundings.env);
  const address = readAddress(context);
  if (address?.caller !== caller) return undefined;
  return await post(address, mission, { ...checkpoint, caller, only_watched: true }, FOR_CHECKPOINT);
}

/** Asks for a live point, and waits a moment for it. */
export async function askForLivePoint(context: CliContext, mission: MissionId): Promise<void> {
  const address = readAddress(context);
  if (address?.version === VERSION) await post(address, mission, { live: true }, FOR_LIVE_POINT);
}

interface Address {
  readonly socketPath: string;
  readonly token: string;
  readonly caller: unknown;
  readonly version: unknown;
}

/** Undefined without a pit. */
function readAddress(context: CliContext): Address | undefined {
  const { run_dir: runDir } = context.config.config;
  const readText = (file: string) => quietly(() => readFileSync(file, "utf8"));
  const { socket, caller, version } = parseObject(readText(addressPath(runDir)) ?? "") ?? {};
  const token = readText(tokenPath(runDir))?.trim();
  return typeof socket === "string" && token ? { socketPath: socket, token, caller, version } : undefined;
}

/** The answer; undefined for a failure of any kind. */
async function post(
  { socketPath, token }: Address,
  mission: MissionId,
  request: JsonObject,
  { continueMs, answerMs }: Timeouts,
): Promise<JsonObject | undefined> {
  const body = JSON.stringify(request);
  const path = `/v1/missions/${mission}/checkpoints`;
  const { promise, resolve } = Promise.withResolvers<JsonObject | undefined>();
  const headers = {
    host: "localhost",
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    expect: "100-continue",
  };
  const outgoing = startRequest({ socketPath, path, method: "POST", headers, agent: false });
  const waitAtMost = (ms: number) => setTimeout(() => outgoing.destroy(new Error("no answer")), ms);
  let timer = waitAtMost(continueMs);
  outgoing.on("continue", () => {
    clearTimeout(timer);
    timer = waitAtMost(answerMs);
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

function parseObject(text: string): JsonObject | undefined {
  const value: unknown = quietly(() => JSON.parse(text));
  return isJsonObject(value) ? value : undefined;
}
