// OpenClaw's embedded agent: any id, the same command continues the session, one database for all sessions, and no hooks.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { optionValues } from "../command-line.ts";
import { keptOpen } from "../database.ts";
import { piFormat } from "../lines.ts";
import type { Place, Profile } from "../profile.ts";

const file = ({ home, env }: Place) =>
  join(env.OPENCLAW_STATE_DIR ?? join(home, ".openclaw"), "agents", "main", "agent", "openclaw-agent.sqlite");
const failed = (why: string) => ({
  text: `⚠️ mock/mock request failed (${why}). Try again later.`,
  stream: "stdout" as const,
  code: 1,
});

const database = keptOpen(
  "CREATE TABLE IF NOT EXISTS transcript_events (session_id TEXT, seq INTEGER PRIMARY KEY, event_json TEXT)",
);
const events = (path: string, id: string) =>
  database(path)
    .prepare("SELECT event_json AS line FROM transcript_events WHERE session_id = ? ORDER BY seq")
    .all(id);

export const profile: Profile = {
  name: "openclaw",
  notCaptured: "its sessions share one database",
  wrapper: "none",
  codeOnSigterm: 143,
  parse: (args) => ({
    prompt: optionValues(args, "-m", "--message").at(-1) ?? "",
    id: optionValues(args, "--session-id").at(-1),
    continues: true,
  }),
  newFile: file,
  findFile: (place, id) => {
    const path = file(place);
    return existsSync(path) && events(path, id).length > 0 ? { path, id } : undefined;
  },
  ...piFormat("exec", 4),
  store: {
    append: (path, id, lines) => {
      const insert = database(path).prepare(
        "INSERT INTO transcript_events (session_id, event_json) VALUES (?, ?)",
      );
      for (const line of lines) insert.run(id, JSON.stringify(line));
    },
    read: (path, id) => events(path, id).map(({ line }) => JSON.parse(String(line))),
  },
  writesCallFirst: true,
  placeholder: null,
  unknownSession: null,
  errors: {
    429: failed("rate limited, HTTP 429"),
    529: failed("overloaded, HTTP 529"),
    401: failed("authentication failed, HTTP 401"),
  },
  noKey: { variable: "OPENAI_API_KEY", ...failed("authentication failed, HTTP 401") },
  hooks: () => ({}),
  events: () => [],
};
