// `npm run readme`: runs the commands of the README and updates their output in it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatReadme, parseReadme } from "./transcript.ts";
import { walkReadme } from "./walk.ts";

const checkout = join(import.meta.dirname, "..", "..");
const path = join(checkout, "README.md");
writeFileSync(path, formatReadme(await walkReadme(parseReadme(readFileSync(path, "utf8")), checkout)));
