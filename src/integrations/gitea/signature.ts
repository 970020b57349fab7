// Verifies that a delivery comes from the forge: HMAC-SHA256 over the raw bytes, compared in constant time. The body is
// parsed only after this check.
import { createHmac, timingSafeEqual } from "node:crypto";
import { LazarusError } from "../../platform/errors.ts";

const HEADERS = ["x-forgejo-signature", "x-gitea-signature", "x-hub-signature-256"] as const;

/** Forges send the signature in several headers; every one that is present must be valid. */
export function refuseUnsigned(headers: Headers, body: Uint8Array, secret: string): void {
  const given = HEADERS.map((name) => headers.get(name)).filter((value) => value !== null);
  if (given.length === 0) throw refused("the delivery is not signed");
  const expected = createHmac("sha256", secret).update(body).digest();
  for (const value of given) {
    const hex = value.replace(/^sha256=/, "");
    if (!/^[0-9a-f]{64}$/i.test(hex) || !timingSafeEqual(Buffer.from(hex, "hex"), expected))
      throw refused("the signature of the delivery is wrong");
  }
}

function refused(message: string): LazarusError {
  return new LazarusError("SIGNATURE_REFUSED", message, {
    hint: "use the same secret in the webhook's settings and in the file of pit.gitea.secret_file",
  });
}
