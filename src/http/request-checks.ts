// Checks of request headers (INV-7), pure. The pit listens on loopback only, but web pages in the user's browser can reach
// loopback as well: a foreign Host means DNS rebinding, a foreign Origin a request from another site.
import { timingSafeEqual } from "node:crypto";
import { LazarusError } from "../platform/errors.ts";

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

export function refuseForeignHost(host: string | null | undefined): void {
  if (host != null && LOOPBACK.test(host)) return;
  throw new LazarusError("HOST_REFUSED", "the Host header is not a loopback address", {
    hint: "use http://127.0.0.1:PORT or http://localhost:PORT; a reverse proxy must set Host to localhost",
  });
}

/** Requests without Origin do not come from a web page. */
export function refuseForeignOrigin(origin: string | null | undefined, host: string): void {
  if (origin == null || origin.toLowerCase() === `http://${host.toLowerCase()}`) return;
  throw new LazarusError("ORIGIN_REFUSED", "cross-origin requests are refused", {
    hint: "only pages served by the pit itself may call its API",
  });
}

/** What a token allows. `operate` includes `read`. */
export const SCOPES = ["read", "operate"] as const;
export type Scope = (typeof SCOPES)[number];

export interface Grant {
  readonly scope: Scope;
  /** The only mission that it is for; null: all of them. */
  readonly mission: string | null;
}

export interface NeededAccess {
  readonly scope: Scope;
  /** The mission that the request is about; undefined: all of them, or none. */
  readonly mission: string | undefined;
}

/** The token of a request; undefined if it has none. */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
}

export function refuseWithoutToken(authorization: string | null | undefined, token: string): void {
  const given = bearerToken(authorization);
  if (given === undefined || !sameText(given, token)) throw tokenRefused(given);
}

/** Throws unless the token of the request allows what the request needs. */
export function refuseBeyondGrant(
  authorization: string | null | undefined,
  grantOf: (token: string) => Grant | undefined,
  needed: NeededAccess,
): void {
  const given = bearerToken(authorization);
  const grant = given === undefined ? undefined : grantOf(given);
  if (grant === undefined) throw tokenRefused(given);
  if (needed.scope === "operate" && grant.scope !== "operate")
    throw scopeRefused("the token only allows reading", "lazarus token create NAME --scope operate");
  if (grant.mission !== null && grant.mission !== needed.mission)
    throw scopeRefused(
      `the token is only for mission ${grant.mission}`,
      `use /v1/missions/${grant.mission}/… or /v1/events?mission=${grant.mission}, or use another token`,
    );
}

function tokenRefused(given: string | undefined): LazarusError {
  const problem = given === undefined ? "the request has no token" : "the token is wrong, revoked or expired";
  return new LazarusError("TOKEN_REFUSED", problem, {
    hint: 'curl -H "Authorization: Bearer $(cat RUN_DIR/token)" …, where RUN_DIR is run_dir in: lazarus config',
  });
}

function scopeRefused(message: string, hint: string): LazarusError {
  return new LazarusError("SCOPE_REFUSED", message, { hint });
}

/** Constant-time comparison; only the length can leak. */
export function sameText(one: string, other: string): boolean {
  const a = Buffer.from(one);
  const b = Buffer.from(other);
  return a.length === b.length && timingSafeEqual(a, b);
}
