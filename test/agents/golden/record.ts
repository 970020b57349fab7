// Turns a session's files into a recording for the conformance suite: `node record.ts <adapter> <name> <session id> <home>
// <working directory>`. Paths, ids and texts of the machine and of the agent itself are replaced or left out.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findAdapter } from "../../../src/agents/adapters.ts";
import { SESSION } from "../cases/case.ts";
import { readerOf } from "../reader.ts";

const [adapterName = "", name = "", session = "", home = "", cwd = ""] = process.argv.slice(2);
const adapter = findAdapter(adapterName)!;
const LONGEST = 80;
const MOST = 3;

/** Keeps the job's own texts. Others are instructions and settings of the agent, which must not be copied. */
function shorten(value: unknown): unknown {
  if (typeof value === "string")
    return value.length <= LONGEST || /^[^#<]*chapter-\d/.test(value) ? value : "…";
  if (Array.isArray(value)) return value.slice(0, MOST).map(shorten);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [
    key,
    key === "messages" && Array.isArray(each) ? each.map(shorten) : shorten(each),
  ]);
  return Object.fromEntries(entries);
}

const place = { cwd, home, env: {} };
const short = (text: string) => text.replaceAll(session.slice(0, 8), SESSION.slice(0, 8));
for (const file of adapter.sessionFiles(place, session, readerOf(home))) {
  const path = join(import.meta.dirname, adapterName, name, short(file.name.replaceAll(session, SESSION)));
  mkdirSync(dirname(path), { recursive: true });
  const lines = readFileSync(file.path, "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => !/"type":"(?:attachment|api-request[\w-]*)"/.test(line))
    .map((line) => JSON.stringify(shorten(JSON.parse(line))))
    .map((line) =>
      line.replaceAll(session, SESSION).replaceAll(cwd, "/home/Ann/app").replaceAll(home, "/home/Ann"),
    )
    .map((line) => short(line).replaceAll(cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), "-home-Ann-app"))
    .map((line) =>
      line
        .replaceAll(/Linux \d[\w.-]+/g, "Linux")
        .replaceAll(/"installation_?id":"[^"]*"/gi, '"installationId":""'),
    );
  writeFileSync(path, `${lines.join("\n")}\n`);
}
