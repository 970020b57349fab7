// Reads a request body up to a limit. A Content-Length above the limit is refused without reading; a body of unknown length
// is counted while it arrives.
import type { ZodType } from "zod";
import { LazarusError } from "../platform/errors.ts";

export async function readBody(request: Request, limitBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > limitBytes) throw tooLarge(limitBytes);
    return new Uint8Array(await request.arrayBuffer());
  }
  if (request.headers.get("transfer-encoding") === null && request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > limitBytes) {
      await reader.cancel().catch(() => {});
      throw tooLarge(limitBytes);
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}

/** Parses JSON and checks it against a schema. An empty body counts as `{}`. */
export function parseBody<T>(body: Uint8Array, schema: ZodType<T>): T {
  let value: unknown = {};
  if (body.byteLength > 0) {
    try {
      value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    } catch {
      throw new LazarusError("BODY_INVALID", "the body is not valid UTF-8 JSON", {
        hint: "see GET /openapi.json",
      });
    }
  }
  return check(value, schema, "the body");
}

export function check<T>(value: unknown, schema: ZodType<T>, subject: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues
    .slice(0, 5)
    .map(({ path, message }) => ({ path: path.join("."), message }));
  const first = issues[0]!;
  const where = first.path === "" ? subject : `${subject}: ${first.path}`;
  throw new LazarusError("BODY_INVALID", `${where}: ${first.message}`, {
    hint: "see GET /openapi.json",
    details: { issues },
  });
}

function tooLarge(limitBytes: number): LazarusError {
  return new LazarusError("BODY_TOO_LARGE", `the body exceeds ${limitBytes} bytes`, {
    hint: "send a smaller body; a heartbeat is a few hundred bytes",
    details: { limit_bytes: limitBytes },
  });
}
