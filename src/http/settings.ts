// The setting of the HTTP API: `pit.http_port`.
import { readSection, setting } from "../cell/settings.ts";
import type { JsonObject } from "../platform/json-file.ts";

/** Fixed, so that a bookmark keeps working. A second pit on the same host gets a free port instead. */
export const DEFAULT_TCP_PORT = 7433;

/** Keys of the section `pit`. */
export const HTTP_SETTINGS = {
  http_port: setting({
    type: (z) => z.union([z.int().min(0).max(65_535), z.null(), z.literal(false).transform(() => null)]),
    default: DEFAULT_TCP_PORT,
    allowed: "a port number, 0 for any free one, or null for none",
    description: "port of the HTTP API on 127.0.0.1; null leaves only the unix socket",
  }),
};

export interface HttpSettings {
  /** Null: only the unix socket. */
  readonly tcpPort: number | null;
  /** Whether the config sets the port; then no other port is tried. */
  readonly chosen: boolean;
}

export function httpSettings(document: JsonObject, file: string | undefined): HttpSettings {
  const { http_port: port } = readSection(HTTP_SETTINGS, document.pit, `${file ?? "config"}: pit`);
  return { tcpPort: port === undefined ? DEFAULT_TCP_PORT : port, chosen: port !== undefined };
}
