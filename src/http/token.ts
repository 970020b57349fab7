// The token of the API: made once, durable, readable by its owner alone (INV-7). It never appears in a log, an event or
// an error.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createFile, makeDirectory, removeFile } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";

const TOKEN_BYTES = 32;
const SHAPE = /^[A-Za-z0-9_-]{32,}$/;

export function tokenPath(runDir: string): string {
  return join(runDir, "token");
}

/** The token, made when there is none or what is there is none. Two makers at once end up with the same one. */
export function ensureToken(machine: Machine, runDir: string): string {
  const path = tokenPath(runDir);
  try {
    makeDirectory(machine.disk, runDir);
    const there = readToken(runDir);
    if (there !== undefined) return there;
    if (isThere(path)) removeFile(machine.disk, path);
    createFile(machine.disk, path, `${Buffer.from(machine.ids.bytes(TOKEN_BYTES)).toString("base64url")}\n`);
  } catch (error) {
    throw asLazarusError(error, `making the token ${path}`, runDir);
  }
  return readToken(runDir)!;
}

/** Undefined when there is none, or what is there is none. Refuses one that others could have read. */
export function readToken(runDir: string): string | undefined {
  const path = tokenPath(runDir);
  let text: string;
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0) {
      throw new LazarusError("TOKEN_EXPOSED", `the token ${path} can be read by other users`, {
        hint: `rm ${path}, then start the pit again: it makes a new one`,
      });
    }
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    throw asLazarusError(error, `reading the token ${path}`, runDir);
  }
  return SHAPE.test(text) ? text : undefined;
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
