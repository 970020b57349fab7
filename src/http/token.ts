// The API token: created once, durable, readable only by its owner (INV-7). It never appears in a log, an event or an
// error.
import { readFileSync, statSync } from "node:fs";
import { createFile, makeDirectory, removeFile } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { tokenPath } from "./caller.ts";

const TOKEN_BYTES = 32;
const SHAPE = /^[A-Za-z0-9_-]{32,}$/;

/** Returns the token; creates it if it is missing or malformed. Concurrent callers get the same token. */
export function ensureToken(machine: Machine, runDir: string): string {
  const path = tokenPath(runDir);
  try {
    makeDirectory(machine.disk, runDir);
    const existing = readToken(runDir);
    if (existing !== undefined) return existing;
    if (exists(path)) removeFile(machine.disk, path);
    createFile(machine.disk, path, `${Buffer.from(machine.ids.bytes(TOKEN_BYTES)).toString("base64url")}\n`);
  } catch (error) {
    throw asLazarusError(error, `creating the token ${path}`, runDir);
  }
  return readToken(runDir)!;
}

/** Undefined if missing or malformed. Refuses a token that other users could have read. */
export function readToken(runDir: string): string | undefined {
  const path = tokenPath(runDir);
  let text: string;
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0) {
      throw new LazarusError("TOKEN_EXPOSED", `the token ${path} can be read by other users`, {
        hint: `rm ${path}, then restart the pit, which creates a new one`,
      });
    }
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    throw asLazarusError(error, `reading the token ${path}`, runDir);
  }
  return SHAPE.test(text) ? text : undefined;
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
