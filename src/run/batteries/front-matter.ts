// Markdown with a YAML head, as personas and Agent Skills are written: `---`, keys, `---`, text. Reads only.
import { readFileSync, statSync } from "node:fs";
import { parse } from "yaml";
import { type ErrorCode, LazarusError } from "../../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";

/** The two parts of such a file. */
export interface FrontMatter {
  readonly head: JsonObject;
  readonly text: string;
}

const LARGEST_BYTES = 1024 * 1024;
const SHAPE = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/;

/** Reads a file of that shape; throws `code` with what is wrong with it. */
export function readFrontMatter(path: string, code: ErrorCode): FrontMatter {
  const wrong = (what: string, cause?: unknown) =>
    new LazarusError(code, `${path}: ${what}`, {
      hint: "begin it with ---, a name, a description, and ---",
      cause,
    });
  if (statSync(path).size > LARGEST_BYTES) throw wrong(`larger than ${LARGEST_BYTES} bytes`);
  const match = SHAPE.exec(readFileSync(path, "utf8"));
  if (match === null) throw wrong("it has no head between two lines of ---");
  let head: unknown;
  try {
    head = parse(match[1]!);
  } catch (error) {
    throw wrong("its head is not YAML", error);
  }
  if (!isJsonObject(head)) throw wrong("its head is not a list of keys and values");
  return { head, text: (match[2] ?? "").trim() };
}

/** The value of a key that must be a text. */
export function textOf(head: JsonObject, key: string): string | undefined {
  const value = head[key];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}
