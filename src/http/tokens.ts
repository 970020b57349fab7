// Tokens with limited scopes, in addition to the full token of token.ts. `<run_dir>/tokens.json` has their names, scopes and
// SHA-256 digests, never the tokens (INV-7); 0600. Commands change it under a lock; the pit reads it again when it changes,
// so a revocation takes effect with the next request. When a token was last used is in a separate file that only the
// pit writes, at most once a minute.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../platform/durable.ts";
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject, type JsonObject, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import { acquireLock } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import { type Grant, SCOPES, sameText } from "./request-checks.ts";

/** A token as stored: everything but the token itself. */
export interface TokenEntry extends Grant {
  readonly name: string;
  readonly sha256: string;
  readonly created_ms: number;
  /** Null: never. */
  readonly expires_ms: number | null;
}

export interface ListedToken extends Omit<TokenEntry, "sha256"> {
  readonly last_used_ms: number | null;
  readonly expired: boolean;
}

export interface NewToken extends Grant {
  readonly name: string;
  readonly expiresMs: number | null;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const TOKEN_BYTES = 32;
const LOCK_WAIT_MS = 10_000;
const USE_NOTED_EVERY_MS = 60_000;

/** Creates a token. It is returned here and cannot be read again later. */
export async function createToken(machine: Machine, runDir: string, wanted: NewToken): Promise<string> {
  const { name, scope, mission, expiresMs } = wanted;
  if (!NAME.test(name)) {
    throw new LazarusError("USAGE", `${JSON.stringify(name)} cannot be the name of a token`, {
      hint: "use 1 to 64 letters, digits, '.', '_' and '-'",
    });
  }
  const token = `lzt_${Buffer.from(machine.ids.bytes(TOKEN_BYTES)).toString("base64url")}`;
  await changeTokens(machine, runDir, (tokens) => {
    if (tokens.some((each) => each.name === name)) {
      throw new LazarusError("TOKEN_EXISTS", `there is already a token ${name}`, {
        hint: `lazarus token revoke ${name}, or choose another name`,
      });
    }
    const entry = { name, scope, mission, sha256: digestOf(token), created_ms: machine.clock.nowMs() };
    return [...tokens, { ...entry, expires_ms: expiresMs }];
  });
  return token;
}

export async function revokeToken(machine: Machine, runDir: string, name: string): Promise<void> {
  await changeTokens(machine, runDir, (tokens) => {
    const rest = tokens.filter((each) => each.name !== name);
    if (rest.length < tokens.length) return rest;
    throw new LazarusError("TOKEN_UNKNOWN", `there is no token ${JSON.stringify(name)}`, {
      hint: "lazarus token list",
    });
  });
}

export function listTokens(machine: Machine, runDir: string): ListedToken[] {
  const used = readUses(runDir);
  const nowMs = machine.clock.nowMs();
  return readTokens(runDir).map(({ sha256, ...token }) => ({
    ...token,
    last_used_ms: used[useKey(sha256)] ?? null,
    expired: isExpired(token, nowMs),
  }));
}

/** What a token allows; undefined for one that is unknown, revoked or expired. */
export type TokenCheck = (token: string) => Grant | undefined;

export function createTokenCheck(machine: Machine, runDir: string, fullToken: string): TokenCheck {
  let version: string | undefined;
  let bySha256 = new Map<string, TokenEntry>();
  const noted = new Map<string, number>();
  const reload = () => {
    const stat = statSync(tokensPath(runDir), { throwIfNoEntry: false });
    const found = stat === undefined ? "none" : `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
    if (found === version) return;
    bySha256 = new Map(readTokens(runDir).map((token) => [token.sha256, token]));
    version = found;
  };
  return (text) => {
    if (sameText(text, fullToken)) return { scope: "operate", mission: null };
    reload();
    const token = bySha256.get(digestOf(text));
    const nowMs = machine.clock.nowMs();
    if (token === undefined || isExpired(token, nowMs)) return undefined;
    if (nowMs - (noted.get(token.sha256) ?? 0) >= USE_NOTED_EVERY_MS) {
      noted.set(token.sha256, nowMs);
      noteUse(machine, runDir, token.sha256, nowMs, bySha256);
    }
    return token;
  };
}

/** Best effort: a full disk must not refuse requests. Uses of revoked tokens are dropped. */
function noteUse(
  machine: Machine,
  runDir: string,
  sha256: string,
  nowMs: number,
  tokens: ReadonlyMap<string, unknown>,
): void {
  try {
    const known = new Set([...tokens.keys()].map(useKey));
    const kept = Object.entries(readUses(runDir)).filter(([key]) => known.has(key));
    const uses = { ...Object.fromEntries(kept), [useKey(sha256)]: nowMs };
    writeJsonFile(machine.disk, usesPath(runDir), { uses });
  } catch {}
}

async function changeTokens(
  machine: Machine,
  runDir: string,
  change: (tokens: readonly TokenEntry[]) => readonly TokenEntry[],
): Promise<void> {
  makeDirectory(machine.disk, runDir);
  using _lock = await acquireLock(machine, join(runDir, "tokens.lock"), {
    purpose: "changing tokens",
    waitMs: LOCK_WAIT_MS,
  });
  writeJsonFile(machine.disk, tokensPath(runDir), { format: 1, tokens: change(readTokens(runDir)) });
}

/** A damaged or exposed file is an error: treating it as empty would lose tokens at the next change. */
function readTokens(runDir: string): TokenEntry[] {
  const path = tokensPath(runDir);
  const reading = readJsonFile(path);
  if (!reading.ok && reading.why === "absent") return [];
  const tokens = reading.ok && reading.value.format === 1 ? reading.value.tokens : undefined;
  if (!Array.isArray(tokens) || !tokens.every(isTokenEntry)) {
    throw new LazarusError("CONFIG_INVALID", `the file ${path} is not a list of tokens of this version`, {
      hint: `mv ${path} ${path}.damaged, then create the tokens again: lazarus token create NAME`,
    });
  }
  if ((statSync(path).mode & 0o022) === 0) return tokens;
  throw new LazarusError("TOKEN_EXPOSED", `other users can write to ${path}`, {
    hint: `check it with: lazarus token list, after: chmod 600 ${path}`,
  });
}

function isTokenEntry(value: unknown): value is TokenEntry & JsonObject {
  return (
    isJsonObject(value) &&
    typeof value.name === "string" &&
    typeof value.sha256 === "string" &&
    (SCOPES as readonly unknown[]).includes(value.scope) &&
    (value.mission === null || typeof value.mission === "string") &&
    typeof value.created_ms === "number" &&
    (value.expires_ms === null || typeof value.expires_ms === "number")
  );
}

function readUses(runDir: string): Record<string, number> {
  const reading = readJsonFile(usesPath(runDir));
  return reading.ok && isJsonObject(reading.value.uses) ? (reading.value.uses as Record<string, number>) : {};
}

function isExpired({ expires_ms: expiresMs }: Pick<TokenEntry, "expires_ms">, nowMs: number): boolean {
  return expiresMs !== null && nowMs >= expiresMs;
}

/** A prefix is enough to tell tokens apart. */
function useKey(sha256: string): string {
  return sha256.slice(0, 16);
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function tokensPath(runDir: string): string {
  return join(runDir, "tokens.json");
}

function usesPath(runDir: string): string {
  return join(runDir, "tokens-used.json");
}
