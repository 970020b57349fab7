// Tells someone: runs a command with the alert as JSON on its standard input, and posts the same JSON to a webhook.
// Nothing from a flow file ever becomes part of a command line or a URL. What went wrong comes back as words; the
// webhook's address, which is often a secret itself, is never among them.
import { spawn } from "node:child_process";
import type { Machine } from "../platform/machine.ts";

export interface AlertTargets {
  /** A line for /bin/sh. */
  readonly command?: string | undefined;
  readonly webhook?: string | undefined;
  /** Sent along with the webhook: an Authorization, say. */
  readonly webhookHeaders?: Readonly<Record<string, string>> | undefined;
}

const PATIENCE_MS = 30_000;

/** Sends to every target. Returns a line per target that failed. */
export async function sendAlert(
  machine: Machine,
  targets: AlertTargets,
  document: Readonly<Record<string, unknown>>,
): Promise<string[]> {
  const body = JSON.stringify(document);
  const attempts: Promise<string | undefined>[] = [];
  if (targets.command !== undefined) attempts.push(runAlert(machine, targets.command, body));
  if (targets.webhook !== undefined)
    attempts.push(postAlert(machine, targets.webhook, body, targets.webhookHeaders));
  return (await Promise.all(attempts)).filter((problem) => problem !== undefined);
}

async function runAlert(machine: Machine, command: string, body: string): Promise<string | undefined> {
  const patience = new AbortController();
  const child = spawn("/bin/sh", ["-c", command], {
    stdio: ["pipe", "ignore", "pipe"],
    signal: patience.signal,
    killSignal: "SIGKILL",
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-400);
  });
  // A command that does not read its input is no failure.
  child.stdin.on("error", () => {});
  child.stdin.end(body);
  const ended = new Promise<string | undefined>((resolve) => {
    child.on("error", (error) => resolve(`the alert command could not be run: ${error.message}`));
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(undefined);
      const how = signal === null ? `exit code ${code}` : signal;
      resolve(`the alert command ended with ${how}${said.trim() === "" ? "" : `: ${said.trim()}`}`);
    });
  });
  return withPatience(machine, patience, ended, "the alert command");
}

async function postAlert(
  machine: Machine,
  url: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const patience = new AbortController();
  const posted = fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", "user-agent": "lazarus" },
    body,
    signal: patience.signal,
    // Followed, an alert could end up anywhere; so the 3xx is the answer.
    redirect: "manual",
  }).then(
    async (response) => {
      await response.body?.cancel();
      return response.ok ? undefined : `the webhook answered ${response.status}`;
    },
    (error: unknown) => {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
      const code = cause !== undefined && "code" in cause ? ` (${String(cause.code)})` : "";
      return `the webhook cannot be reached${code}`;
    },
  );
  return withPatience(machine, patience, posted, "the webhook");
}

async function withPatience(
  machine: Machine,
  patience: AbortController,
  work: Promise<string | undefined>,
  what: string,
): Promise<string | undefined> {
  const over = new AbortController();
  const late = machine.clock.sleep(PATIENCE_MS, over.signal).then(() => {
    if (over.signal.aborted) return undefined;
    patience.abort();
    return `${what} took more than ${PATIENCE_MS / 1000} s`;
  });
  const first = await Promise.race([work, late]);
  over.abort();
  return first;
}
