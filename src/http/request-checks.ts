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

export function refuseWithoutToken(authorization: string | null | undefined, token: string): void {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && sameText(given, token)) return;
  const problem = given === undefined ? "the request has no token" : "the token is wrong";
  throw new LazarusError("TOKEN_REFUSED", problem, {
    hint: 'curl -H "Authorization: Bearer $(cat RUN_DIR/token)" …, where RUN_DIR is run_dir in: lazarus config',
  });
}

/** Constant-time comparison; only the length can leak. */
export function sameText(one: string, other: string): boolean {
  const a = Buffer.from(one);
  const b = Buffer.from(other);
  return a.length === b.length && timingSafeEqual(a, b);
}
