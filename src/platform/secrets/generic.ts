// Secrets that have no vendor and so no rule upstream: private keys in PEM, JSON web tokens, authorization headers, and
// assignments such as `password=…` (INV-7). Pure. Time is linear in the text, which may be large and hostile. A value that
// names a secret instead of being one (`password=$DB_PASSWORD`, `token: see the vault`) is not reported.

import { quietly } from "../errors.ts";
import type { SecretRange } from "./find.ts";

/** Every generic secret in `text`: only the value, without its name. Ranges may overlap. */
export function findGenericSecrets(text: string): SecretRange[] {
  return [
    ...findPrivateKeys(text),
    ...findWebTokens(text),
    ...findAuthorizations(text),
    ...findAssignments(text),
  ];
}

/** False when `text` has none of the words that an assignment or a header with a secret needs. Cheap; for the hot path. */
export function mayContainSecret(text: string): boolean {
  return /passw|passphrase|pwd|secret|token|api.?key|access.?key|credential|bearer|basic|eyJ/i.test(text);
}

const PEM_BEGIN = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;
const PEM_END = /-----END [A-Z0-9 ]{1,60}-----/g;

/** To the END line, or to the end of the text when it was cut off. */
function findPrivateKeys(text: string): SecretRange[] {
  return [...text.matchAll(PEM_BEGIN)].map(({ index }) => {
    PEM_END.lastIndex = index;
    const end = PEM_END.exec(text);
    return { kind: "privatekey", start: index, end: end === null ? text.length : PEM_END.lastIndex };
  });
}

/** `eyJ` is the base64 of `{"`. */
const WEB_TOKEN = /(?<![\w-])(eyJ[\w-]{8,4096})(?:\.[\w-]{0,65536}){2,4}/g;

function findWebTokens(text: string): SecretRange[] {
  return [...text.matchAll(WEB_TOKEN)]
    .filter(([, header]) => isWebTokenHeader(header!))
    .map(({ 0: all, index }) => ({ kind: "jwt", start: index, end: index + all.length }));
}

function isWebTokenHeader(base64: string): boolean {
  return quietly(() => "alg" in JSON.parse(Buffer.from(base64, "base64url").toString("utf8"))) ?? false;
}

const AUTHORIZATION = /\b(?:Bearer|Basic|Token)[ \t]{1,8}([\w.~+/-]{16,}={0,2})/gi;

function findAuthorizations(text: string): SecretRange[] {
  return [...text.matchAll(AUTHORIZATION)]
    .filter(([, value]) => looksRandom(value!))
    .map(({ 0: all, 1: value, index }) => {
      const end = index + all.length;
      return { kind: "authorization", start: end - value!.length, end };
    });
}

/** A name, an assignment and the start of a value. Names are limited, so that a long word is not tried at every offset. */
const ASSIGNMENT =
  /(?<![A-Za-z0-9])((?:[A-Za-z0-9]{1,30}[_.-]){0,6}[A-Za-z0-9]{1,40})\\{0,2}["'`]?(?:[ \t]{0,4}(=|:=|:|=>)[ \t]{0,4}|[ \t]{1,4})(?=\S)/g;
const QUOTED = /\\{0,2}(["'`])((?:(?!\1)[^\n]){1,500})(?:\1|(?=\n)|$)/y;
const BARE = /[^\s"'`,;&|)\]}<>]{1,500}/y;
const PASSWORD_NAME = /(?:password|passwd|passphrase|pwd)$/i;
const KEY_NAME = /(?:secret|token|credentials?|(?:api|access|secret|private|auth)[_.-]?key)$/i;
/** Opaque, but not secret: positions in a list, and tokens that protect a form. */
const OPEN_TOKEN_NAME = /(?:page|next|continuation|sync|start|cursor|csrf)[_.-]?token$/i;

function findAssignments(text: string): SecretRange[] {
  const found: SecretRange[] = [];
  for (const match of text.matchAll(ASSIGNMENT)) {
    const [all, name, sign] = match;
    const isPassword = PASSWORD_NAME.test(name!);
    if (!isPassword && (!KEY_NAME.test(name!) || OPEN_TOKEN_NAME.test(name!))) continue;
    // `--password VALUE`: a space assigns only after the dashes of an option.
    if (sign === undefined && !text.slice(0, match.index).endsWith("--")) continue;
    const { value, end, quoted } = readValue(text, match.index + all.length);
    if (!isSecretValue(value, { isPassword, assigned: sign === "=" || quoted })) continue;
    found.push({ kind: isPassword ? "password" : "assigned-secret", start: end - value.length, end });
  }
  return found;
}

function readValue(text: string, start: number): { value: string; end: number; quoted: boolean } {
  QUOTED.lastIndex = start;
  const quoted = QUOTED.exec(text);
  if (quoted !== null) {
    const [, quote, value] = quoted;
    const end = start + quoted[0].indexOf(quote!) + 1 + value!.length;
    return { value: value!, end, quoted: true };
  }
  BARE.lastIndex = start;
  const value = BARE.exec(text)?.[0] ?? "";
  return { value, end: start + value.length, quoted: false };
}

/** A reference to a secret: a variable, a placeholder, a store, a masked or redacted value. */
const REFERENCE =
  /^(?:[$<{[(%*.…]|~?\/|x{3,}$|\w+:\/\/|(?:env|vault|op|sops|file|keychain|secret)[:/]|(?:process\.env|os\.environ|import\.meta)\b|your[_-]|example|changeme|redacted|hidden|\W*$)/i;
/** Words that describe a password or where it comes from. */
const DESCRIPTION =
  /^(?:ask|asked|prompt|prompted|none|null|nil|true|false|yes|no|on|off|required|optional|string|text|str|empty|unset|set|default|missing|wrong|invalid|expired|env|stdin|input|value|password|secret|token|file|manager)[.!?]?$/i;
const MIN_PASSWORD = 4;
const MIN_KEY = 12;

function isSecretValue(value: string, { isPassword, assigned }: { isPassword: boolean; assigned: boolean }) {
  if (REFERENCE.test(value) || DESCRIPTION.test(value)) return false;
  if (!isPassword) return value.length >= MIN_KEY && looksRandom(value);
  if (value.length < MIN_PASSWORD) return false;
  // `password: see the vault` is prose, `password: hunter2` is not.
  return assigned ? !/\s/.test(value) || looksRandom(value) : /\d/.test(value) && /[a-z]/i.test(value);
}

/** Whether a part of it mixes letters and digits, as generated values do; slugs, paths and dates do not. */
function looksRandom(value: string): boolean {
  return value
    .split(/[\s/._:~-]+/)
    .some((part) => part.length >= 6 && /\d/.test(part) && /[a-z]/i.test(part) && !isOrdinary(part));
}

/** A word with a number (`utf8mb4`, `sha256sum`) or a time. */
function isOrdinary(part: string): boolean {
  return /^[A-Za-z]{2,}\d{1,4}[a-z]{0,3}\d?$/.test(part) || /^\d{8}T\d{4,6}Z?$/.test(part);
}
