// What the config says of the forge: `pit.gitea`. The secret lies in a file of its own that only its owner can read.
import { readFileSync, statSync } from "node:fs";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";

export const DEFAULT_LABEL = "mission-approved";

export interface GiteaSettings {
  readonly secretFile: string;
  /** The label that makes a proposal a mission. */
  readonly label: string;
  /** Only these (owner/name); undefined: any that has the secret. */
  readonly repositories: readonly string[] | undefined;
  /** Only these users' labels count; undefined: whoever the forge lets set labels. */
  readonly approvers: readonly string[] | undefined;
}

/** Undefined when the config has no such section: the door stays shut. */
export function giteaSettings(document: JsonObject, file: string | undefined): GiteaSettings | undefined {
  const where = `${file ?? "config"}: pit.gitea`;
  const section = isJsonObject(document.pit) ? document.pit.gitea : undefined;
  if (section === undefined || section === null) return undefined;
  if (!isJsonObject(section)) throw invalid(where, "an object");
  const { secret_file: secretFile, label = DEFAULT_LABEL } = section;
  if (typeof secretFile !== "string" || secretFile === "") throw invalid(`${where}.secret_file`, "a path");
  if (typeof label !== "string" || label === "") throw invalid(`${where}.label`, "a label's name");
  return {
    secretFile,
    label,
    repositories: names(section.repositories, `${where}.repositories`),
    approvers: names(section.approvers, `${where}.approvers`),
  };
}

const SHORTEST_SECRET = 16;

export function readWebhookSecret(path: string): string {
  let secret: string;
  try {
    if ((statSync(path).mode & 0o077) !== 0) {
      throw new LazarusError("TOKEN_EXPOSED", `the webhook secret ${path} can be read by other users`, {
        hint: `chmod 600 ${path}`,
      });
    }
    secret = readFileSync(path, "utf8").trim();
  } catch (error) {
    throw asLazarusError(error, `reading the webhook secret ${path}`, path);
  }
  if (secret.length >= SHORTEST_SECRET) return secret;
  throw new LazarusError(
    "CONFIG_INVALID",
    `the webhook secret in ${path} is shorter than ${SHORTEST_SECRET} characters`,
    {
      hint: `openssl rand -hex 32 > ${path}`,
    },
  );
}

function names(value: unknown, key: string): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((name) => typeof name === "string" && name !== "")) return value;
  throw invalid(key, "a list of names");
}

function invalid(key: string, expected: string): LazarusError {
  return new LazarusError("CONFIG_INVALID", `${key} is not ${expected}`, {
    hint: "edit it, then: lazarus config",
    details: { key, expected },
  });
}
