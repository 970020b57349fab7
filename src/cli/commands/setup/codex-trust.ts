// Asks Codex whether it would run the hooks that `lazarus run` passes: the hash that makes it trust them is not documented
// (ADR 24). Its app server answers without a login and calls no model. It gets a home of its own, so nothing of the user's is
// read or written.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quietly } from "../../../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../../../platform/json-file.ts";

/** Null: it did not say. */
export type Trust = "trusted" | "untrusted" | null;

const LIMIT_MS = 10_000;
const LIMIT_CHARACTERS = 1024 * 1024;
const LIST_ID = 2;

export async function askCodexTrust(
  program: string,
  hookArguments: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Trust> {
  const home = mkdtempSync(join(tmpdir(), "lazarus-codex-"));
  try {
    return await ask(program, hookArguments, { ...env, CODEX_HOME: home }, home);
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function ask(program: string, hookArguments: readonly string[], env: NodeJS.ProcessEnv, home: string) {
  const requests = [
    { id: 1, method: "initialize", params: { clientInfo: { name: "lazarus", version: "1" } } },
    { method: "initialized" },
    { id: LIST_ID, method: "hooks/list", params: { cwds: [home] } },
  ];
  const child = spawn(program, [...hookArguments, "app-server"], {
    cwd: home,
    env,
    stdio: ["pipe", "pipe", "ignore"],
    // The program may be a wrapper.
    detached: true,
  });
  return new Promise<Trust>((resolve) => {
    let output = "";
    let answer: Trust = null;
    const end = () => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch {
        // It has ended, or was never started.
      }
    };
    const timer = setTimeout(end, LIMIT_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const found = output
        .split("\n")
        .slice(0, -1)
        .map((line) => quietly(() => JSON.parse(line)))
        .find(isAnswer);
      if (found !== undefined) answer = readTrust(found);
      if (found !== undefined || output.length > LIMIT_CHARACTERS) end();
    });
    child.stdin.on("error", () => {});
    child.stdin.write(requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
    child.on("error", () => {});
    child.on("close", () => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
}

function isAnswer(message: unknown): message is JsonObject {
  return isJsonObject(message) && message.id === LIST_ID;
}

/** Pure. Trusted if Codex lists hooks, and trusts each of them. */
export function readTrust({ result }: JsonObject): Trust {
  const listed = isJsonObject(result) && Array.isArray(result.data) ? result.data : [];
  const hooks = listed.flatMap((each) => (isJsonObject(each) && Array.isArray(each.hooks) ? each.hooks : []));
  const states = hooks.map((hook) => (isJsonObject(hook) ? hook.trustStatus : undefined));
  if (states.length === 0 || states.some((state) => typeof state !== "string")) return null;
  return states.every((state) => state === "trusted" || state === "managed") ? "trusted" : "untrusted";
}
