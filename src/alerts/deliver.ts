// Sends one JSON document to one destination: a command gets it on its standard input, a webhook as the request body.
// Nothing from the document becomes part of a command line or a URL. A failure is returned as a message without secrets:
// never the webhook's address, and a command's stderr only after redaction (INV-7).
import { spawn } from "node:child_process";
import type { Machine } from "../platform/machine.ts";

export type Destination =
  /** A line for /bin/sh. */
  | { readonly command: string }
  | { readonly webhook: string; readonly headers?: Readonly<Record<string, string>> | undefined };

const TIMEOUT_MS = 30_000;
const STDERR_TAIL_CHARACTERS = 400;
const MAX_PROBLEM_CHARACTERS = 300;

/** Returns undefined once the document was delivered, else why it was not. */
export async function deliver(
  machine: Machine,
  destination: Destination,
  document: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const body = JSON.stringify(document);
  const problem =
    "command" in destination
      ? await withTimeout(machine, "the alert command", (signal) =>
          runCommand(destination.command, body, signal),
        )
      : await withTimeout(machine, "the webhook", (signal) => postWebhook(destination, body, signal));
  if (problem === undefined) return undefined;
  const { redactSecrets } = await import("../platform/secrets/redact.ts");
  return (await redactSecrets(problem)).value.slice(0, MAX_PROBLEM_CHARACTERS);
}

function runCommand(command: string, body: string, signal: AbortSignal): Promise<string | undefined> {
  const child = spawn("/bin/sh", ["-c", command], {
    stdio: ["pipe", "ignore", "pipe"],
    signal,
    killSignal: "SIGKILL",
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-STDERR_TAIL_CHARACTERS);
  });
  // A command that does not read its input has not failed.
  child.stdin.on("error", () => {});
  child.stdin.end(body);
  return new Promise((resolve) => {
    child.on("error", (error) => resolve(`the alert command could not be run: ${error.message}`));
    child.on("close", (code, killedBy) => {
      if (code === 0) return resolve(undefined);
      const how = killedBy === null ? `exited with ${code}` : `was killed by ${killedBy}`;
      resolve(`the alert command ${how}${stderr.trim() === "" ? "" : `: ${stderr.trim()}`}`);
    });
  });
}

async function postWebhook(
  { webhook, headers }: Extract<Destination, { webhook: string }>,
  body: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const response = await fetch(webhook, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", "user-agent": "lazarus" },
      body,
      signal,
      // A redirect could send the alert anywhere, so a 3xx counts as a failure.
      redirect: "manual",
    });
    await response.body?.cancel();
    return response.ok ? undefined : `the webhook responded with ${response.status}`;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
    const code = cause !== undefined && "code" in cause ? ` (${String(cause.code)})` : "";
    return `the webhook cannot be reached${code}`;
  }
}

async function withTimeout(
  machine: Machine,
  name: string,
  send: (signal: AbortSignal) => Promise<string | undefined>,
): Promise<string | undefined> {
  const timeout = new AbortController();
  const finished = new AbortController();
  const expired = machine.clock.sleep(TIMEOUT_MS, finished.signal).then(() => {
    if (finished.signal.aborted) return undefined;
    timeout.abort();
    return `${name} took more than ${TIMEOUT_MS / 1000} s`;
  });
  const problem = await Promise.race([send(timeout.signal), expired]);
  finished.abort();
  return problem;
}
