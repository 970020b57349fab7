// The symbolic links that lead to a mission's conversation when the user starts its agent. Dotfile managers make such
// links, and the agent writes through them. They are recorded outside the cell (place.ts), so that a link that an agent
// makes later is not followed (INV-11). Reads only.
import type { Adapter, Place } from "../adapter.ts";
import { createSessionReader } from "./source.ts";

/** A link may lead to the next one. */
const LIMIT = 20;
/** Later than any session: directories are listed, but no file is read. */
const NEVER_MS = Date.UTC(9999);

/** The place with the links that lead to its conversations and, if the user continues a session, to the files of that session. */
export function trustLinks(adapter: Adapter, place: Place, session: string | null): Place {
  let links: Readonly<Record<string, string>> = {};
  for (let round = 0; round < LIMIT; round += 1) {
    const trusted = { ...place, links };
    const reader = createSessionReader(adapter, trusted);
    adapter.findSessions(trusted, NEVER_MS, reader);
    // An adapter that cannot list sessions lists the directory of any of them.
    const files = adapter.sessionFiles(trusted, session ?? "any", reader);
    for (const { path } of session === null ? [] : files) reader.createdMs(path);
    const found = [...reader.refused].flatMap(([path, { target }]) =>
      target === undefined ? [] : [[path, target] as const],
    );
    if (found.every(([path]) => path in links)) break;
    links = { ...links, ...Object.fromEntries(found) };
  }
  return { ...place, links };
}
