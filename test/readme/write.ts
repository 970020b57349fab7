// `npm run readme`: walks the README and writes what its commands print now into it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatReadme, parseReadme } from "./transcript.ts";
import { walkReadme } from "./walk.ts";

const checkout = join(import.meta.dirname, "..", "..");
const path = join(checkout, "README.md");
writeFileSync(path, formatReadme(await walkReadme(parseReadme(readFileSync(path, "utf8")), checkout)));
