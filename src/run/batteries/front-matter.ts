// Reads Markdown with YAML front matter, the format of personas and Agent Skills.
import { readFileSync, statSync } from "node:fs";
import { parse } from "yaml";
import { type ErrorCode, LazarusError } from "../../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";

/** Front matter and text of a file. */
export interface FrontMatter {
  readonly head: JsonObject;
  readonly text: string;
}

const MAX_BYTES = 1024 * 1024;
const SHAPE = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/;

/** Reads a file with front matter; throws `code` for an invalid one. */
export function readFrontMatter(path: string, code: ErrorCode): FrontMatter {
  const invalid = (problem: string, cause?: unknown) =>
    new LazarusError(code, `${path}: ${problem}`, {
      hint: "start the file with ---, a name, a description, and ---",
      cause,
    });
  if (statSync(path).size > MAX_BYTES) throw invalid(`larger than ${MAX_BYTES} bytes`);
  const match = SHAPE.exec(readFileSync(path, "utf8"));
  if (match === null) throw invalid("no front matter between two lines of ---");
  let head: unknown;
  try {
    head = parse(match[1]!);
  } catch (error) {
    throw invalid("the front matter is not valid YAML", error);
  }
  if (!isJsonObject(head)) throw invalid("the front matter is not a mapping");
  return { head, text: (match[2] ?? "").trim() };
}

/** The value of a key, if it is a non-empty string. */
export function textOf(head: JsonObject, key: string): string | undefined {
  const value = head[key];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}
