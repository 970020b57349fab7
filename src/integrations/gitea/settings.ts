// The section `pit.gitea`: webhooks of Gitea and Forgejo. The shared secret is kept in a separate file that only its
// owner can read.
import { readFileSync, statSync } from "node:fs";
import { invalidSetting, readSection, setting } from "../../cell/settings.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";

export const DEFAULT_LABEL = "mission-approved";

export const GITEA_SETTINGS = {
  secret_file: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "a path",
    description: "file with the webhook's shared secret, mode 0600; required when the section is present",
  }),
  label: setting({
    type: (z) => z.string().min(1),
    default: DEFAULT_LABEL,
    allowed: "a label name",
    description: "issue label that approves a mission proposal",
  }),
  repositories: setting({
    type: (z) => z.array(z.string().min(1)).readonly(),
    default: undefined,
    allowed: "a list of names",
    description:
      "accept proposals from these repositories only (owner/name); unset: from every repository with the secret",
  }),
  approvers: setting({
    type: (z) => z.array(z.string().min(1)).readonly(),
    default: undefined,
    allowed: "a list of names",
    description:
      "users whose label counts as approval, except for their own proposals; unset: every proposal is ignored",
  }),
};

export interface GiteaSettings {
  readonly secretFile: string;
  readonly label: string;
  readonly repositories: readonly string[] | undefined;
  readonly approvers: readonly string[] | undefined;
}

/** Undefined when the config has no such section: webhooks are then refused. */
export function giteaSettings(document: JsonObject, file: string | undefined): GiteaSettings | undefined {
  const where = `${file ?? "config"}: pit.gitea`;
  const section = isJsonObject(document.pit) ? document.pit.gitea : undefined;
  if (section === undefined || section === null) return undefined;
  const values = readSection(GITEA_SETTINGS, section, where, { nullIsUnset: true });
  if (values.secret_file === undefined)
    throw invalidSetting(`${where}.secret_file`, GITEA_SETTINGS.secret_file.allowed);
  return {
    secretFile: values.secret_file,
    label: values.label ?? DEFAULT_LABEL,
    repositories: values.repositories,
    approvers: values.approvers,
  };
}

const MIN_SECRET_LENGTH = 16;

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
  if (secret.length >= MIN_SECRET_LENGTH) return secret;
  throw new LazarusError(
    "CONFIG_INVALID",
    `the webhook secret in ${path} is shorter than ${MIN_SECRET_LENGTH} characters`,
    {
      hint: `openssl rand -hex 32 > ${path}`,
    },
  );
}
