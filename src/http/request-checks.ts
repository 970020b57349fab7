// Who may ask (INV-7): pure checks of the headers of a request. The pit listens on loopback only, but so does every web
// page in the user's browser: a foreign Host means DNS rebinding, a foreign Origin a page that has no business here.
import { timingSafeEqual } from "node:crypto";
import { LazarusError } from "../platform/errors.ts";

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

export function refuseForeignHost(host: string | null | undefined): void {
  if (host != null && LOOPBACK.test(host)) return;
  throw new LazarusError("HOST_REFUSED", "the Host header does not name this machine's loopback", {
    hint: "ask http://127.0.0.1:PORT or http://localhost:PORT; a proxy in front must set Host to localhost",
  });
}

/** A request without Origin comes from no web page. */
export function refuseForeignOrigin(origin: string | null | undefined, host: string): void {
  if (origin == null || origin.toLowerCase() === `http://${host.toLowerCase()}`) return;
  throw new LazarusError("ORIGIN_REFUSED", "requests of web pages from elsewhere are refused", {
    hint: "only pages that the pit itself serves may ask it",
  });
}

export function refuseWithoutToken(authorization: string | null | undefined, token: string): void {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && sameText(given, token)) return;
  const what = given === undefined ? "the request has no token" : "the token is not the right one";
  throw new LazarusError("TOKEN_REFUSED", what, {
    hint: 'curl -H "Authorization: Bearer $(cat RUN_DIR/token)" …, where RUN_DIR is run_dir in: lazarus config',
  });
}

/** Takes the same time wherever the two differ; only their lengths show. */
export function sameText(one: string, other: string): boolean {
  const a = Buffer.from(one);
  const b = Buffer.from(other);
  return a.length === b.length && timingSafeEqual(a, b);
}
