// The write seam: the only way by which a run's words become stored text, and back. Values are redacted (INV-7), made
// JSON and, with a key, sealed with AES-256-GCM bound to the place where they lie, so that rows can be neither read,
// changed nor swapped. With a key, text that is not sealed is refused: someone else wrote it.
import type { KeyObject } from "node:crypto";
import { LazarusError } from "../../platform/errors.ts";
import type { IdSource } from "../../platform/ids.ts";
import { redactSecrets } from "../../platform/redact.ts";

/** What happens to text before it is stored. */
export interface SealOptions {
  /** Leave secrets in place; the default takes them out. */
  readonly keepSecrets?: boolean | undefined;
  /** 32 bytes. Everything the run said and did is sealed with it; ids, states and times stay readable. */
  readonly encryptionKey?: Uint8Array | undefined;
}

/** Text as it is stored. */
export interface Sealed {
  readonly text: string;
  readonly redactions: number;
}

/** The seam itself: into stored text, and back. */
export interface Seal {
  /** `where` names the row; the same words must be given to open it. */
  seal(where: string, value: unknown): Promise<Sealed>;
  open(where: string, text: string): unknown;
}

const PREFIX = "aes256gcm:1:";
const KEY_BYTES = 32;
const KEY_HINT =
  "give the key that it was written with: encryptionKey, or LAZARUS_RUN_KEY (base64) for lazarus runs";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Makes the seam. Throws RUN_KEY_WRONG for a key of the wrong length. */
export function createSeal(ids: IdSource, options: SealOptions = {}): Seal {
  const crypto = process.getBuiltinModule("node:crypto");
  const key = options.encryptionKey === undefined ? undefined : checkKey(options.encryptionKey);
  return {
    async seal(where, value) {
      // The scan must see the strings that `toJSON` and friends bring forth.
      const said = JSON.stringify(value) ?? "null";
      const { value: clean, count } = options.keepSecrets
        ? { value, count: 0 }
        : await redactSecrets(JSON.parse(said));
      const json = count === 0 ? said : (JSON.stringify(clean) ?? "null");
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
      `an encryption key has ${KEY_BYTES} bytes; this one has ${bytes.length}`,
      {
        hint: `encryptionKey takes ${KEY_BYTES} bytes, LAZARUS_RUN_KEY their base64; a new one: openssl rand -base64 ${KEY_BYTES}`,
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
    throw new LazarusError(
      "RUN_PLAINTEXT",
      `${where} is not encrypted, though this store is; it is refused`,
      {
        hint: "find out who wrote it; to read a store of plain text, open it without encryptionKey",
      },
    );
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
      `${where} cannot be decrypted: another key, or it was changed or moved`,
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
    throw new LazarusError("RUN_DAMAGED", `${where} holds something that is not JSON`, {
      hint: "restore the store from a checkpoint: lazarus checkpoints",
      cause: error,
    });
  }
}
