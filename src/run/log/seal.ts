// The only path from the data of a run to stored text and back. Values are redacted (INV-7), serialized as JSON and, with
// a key, encrypted with AES-256-GCM. The row's name is authenticated, so that rows can be neither read, changed nor
// swapped. With a key, plaintext is refused, since the owner of the key did not write it.
import type { KeyObject } from "node:crypto";
import { LazarusError } from "../../platform/errors.ts";
import type { IdSource } from "../../platform/ids.ts";
import { redactSecrets } from "../../platform/secrets/redact.ts";

/** What happens to text before it is stored. */
export interface SealOptions {
  /** Store secrets instead of redacting them. Default false. */
  readonly keepSecrets?: boolean | undefined;
  /** 32 bytes. Encrypts the content of runs; ids, states and times stay readable. */
  readonly encryptionKey?: Uint8Array | undefined;
}

/** Text in its stored form. */
export interface Sealed {
  readonly text: string;
  readonly redactions: number;
}

/** Converts values to stored text and back. */
export interface Seal {
  /** `where` names the row; `open` needs the same name. */
  seal(where: string, value: unknown): Promise<Sealed>;
  open(where: string, text: string): unknown;
}

const PREFIX = "aes256gcm:1:";
const KEY_BYTES = 32;
const KEY_HINT =
  "use the key it was written with: encryptionKey, or LAZARUS_RUN_KEY (base64) for lazarus runs";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Creates a seal. Throws RUN_KEY_WRONG for a key of the wrong length. */
export function createSeal(ids: IdSource, options: SealOptions = {}): Seal {
  const crypto = process.getBuiltinModule("node:crypto");
  const key = options.encryptionKey === undefined ? undefined : checkKey(options.encryptionKey);
  return {
    async seal(where, value) {
      // Serialize first: `toJSON` may produce strings that must be scanned too.
      const serialized = JSON.stringify(value) ?? "null";
      const { value: clean, count } = options.keepSecrets
        ? { value, count: 0 }
        : await redactSecrets(JSON.parse(serialized));
      const json = count === 0 ? serialized : (JSON.stringify(clean) ?? "null");
      if (key === undefined) return { text: json, redactions: count };
      const nonce = ids.bytes(NONCE_BYTES);
      const cipher = crypto.createCipheriv("aes-256-gcm", key, nonce);
      cipher.setAAD(Buffer.from(where));
      const body = Buffer.concat([nonce, cipher.update(json, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return { text: PREFIX + body.toString("base64"), redactions: count };
    },
    open(where, text) {
      return parse(where, key === undefined ? refuseSealed(where, text) : unseal(crypto, key, where, text));
    },
  };
}

function checkKey(bytes: Uint8Array): KeyObject {
  if (bytes.length !== KEY_BYTES) {
    throw new LazarusError(
      "RUN_KEY_WRONG",
      `the encryption key has ${bytes.length} bytes instead of ${KEY_BYTES}`,
      {
        hint: `LAZARUS_RUN_KEY is the key in base64; to create one: openssl rand -base64 ${KEY_BYTES}`,
      },
    );
  }
  return process.getBuiltinModule("node:crypto").createSecretKey(bytes);
}

function refuseSealed(where: string, text: string): string {
  if (!text.startsWith(PREFIX)) return text;
  throw new LazarusError("RUN_KEY_WRONG", `${where} is encrypted, and no key was given`, {
    hint: KEY_HINT,
  });
}

function unseal(crypto: typeof import("node:crypto"), key: KeyObject, where: string, text: string): string {
  if (!text.startsWith(PREFIX)) {
    throw new LazarusError("RUN_PLAINTEXT", `${where} is not encrypted, but a key was given`, {
      hint: "open a store without encryption without a key; in an encrypted store, find out what wrote this row",
    });
  }
  const body = Buffer.from(text.slice(PREFIX.length), "base64");
  try {
    const decipher = crypto.createDecipheriv("aes-256-gcm", key, body.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(where));
    decipher.setAuthTag(body.subarray(body.length - TAG_BYTES));
    return (
      decipher.update(body.subarray(NONCE_BYTES, body.length - TAG_BYTES), undefined, "utf8") +
      decipher.final("utf8")
    );
  } catch (error) {
    throw new LazarusError(
      "RUN_KEY_WRONG",
      `${where} cannot be decrypted: wrong key, or the row was changed or moved`,
      {
        hint: KEY_HINT,
        cause: error,
      },
    );
  }
}

function parse(where: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new LazarusError("RUN_DAMAGED", `${where} is not valid JSON`, {
      hint: "restore the store from a checkpoint: lazarus checkpoints",
      cause: error,
    });
  }
}
