// What the config says of HTTP: `pit.http_port`. Pure.
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";

/** Agreed upon, so that a bookmark keeps working; another user's pit on the same host gets a free one instead. */
export const DEFAULT_TCP_PORT = 7433;

export interface HttpSettings {
  /** Null: only the unix socket. */
  readonly tcpPort: number | null;
  /** Whether a human chose the port; then it must be that one. */
  readonly chosen: boolean;
}

export function httpSettings(document: JsonObject, file: string | undefined): HttpSettings {
  const value = isJsonObject(document.pit) ? document.pit.http_port : undefined;
  if (value === undefined) return { tcpPort: DEFAULT_TCP_PORT, chosen: false };
  if (value === null || value === false) return { tcpPort: null, chosen: true };
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 65_535)
    return { tcpPort: value, chosen: true };
  const key = `${file ?? "config"}: pit.http_port`;
  throw new LazarusError(
    "CONFIG_INVALID",
    `${key} is not a port number, 0 for any free one, or null for none`,
    {
      hint: "edit it, then: lazarus config",
      details: { key },
    },
  );
}
