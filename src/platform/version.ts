// The version: inlined from package.json at build time, read from it when the sources run directly.
import { readFileSync } from "node:fs";

declare const LAZARUS_VERSION: string | undefined;

export const VERSION: string =
  typeof LAZARUS_VERSION === "string"
    ? LAZARUS_VERSION
    : JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
