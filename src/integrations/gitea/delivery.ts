// Classifies a signed delivery: a proposal that an approver has approved, or a delivery to ignore, with the reason. Pure.
// An approval is the label, set by a configured approver who is not the author, together with the text of the issue at
// that moment. What earlier deliveries showed about the issue comes in as a sighting, and the new one is returned, since
// a delivery about another label also lists a label that another user set before.
import { createHash } from "node:crypto";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";
import type { GiteaSettings } from "./settings.ts";

export interface Proposal {
  readonly repository: string;
  readonly issue: number;
  readonly url: string | null;
  readonly author: string;
  readonly approvedBy: string;
  /** The issue's text when it was approved; untrusted. */
  readonly text: string;
  readonly textSha256: string;
}

/** The approval label of an issue, as the deliveries so far have shown it. */
export interface Sighting {
  readonly labelled: boolean;
  /** Who set the label; null unless that was an approver and the text is still the approved one. */
  readonly approved_by: string | null;
  /** SHA-256 of the approved text. */
  readonly text_sha256: string | null;
}

export type Classification = { readonly sighting?: Sighting } & (
  | { readonly act: "create"; readonly proposal: Proposal }
  | { readonly act: "ignore"; readonly reason: string }
);

export interface IssueName {
  readonly repository: string;
  readonly issue: number;
}

type Rules = Pick<GiteaSettings, "label" | "repositories" | "approvers">;

/** Gitea and Forgejo send `label_updated` and `label_cleared`, GitHub and newer Forgejo `labeled` and `unlabeled`. */
const LABEL_ACTIONS = new Set(["label_updated", "label_cleared", "labeled", "unlabeled"]);

/** The issue that a delivery is about; undefined if it is about something else. */
export function issueOf(payload: JsonObject): IssueName | undefined {
  const { number, pull_request: pullRequest } = objectOf(payload.issue);
  const repository = textOf(objectOf(payload.repository).full_name);
  if (repository === undefined || !isIssueNumber(number) || isJsonObject(pullRequest)) return undefined;
  return { repository, issue: number };
}

export function classifyDelivery(
  eventName: string | null,
  payload: JsonObject,
  rules: Rules,
  before?: Sighting,
): Classification {
  if (eventName !== "issues" && eventName !== "issue_label") return ignore("not an issue event");
  const name = issueOf(payload);
  const sender = loginOf(payload.sender);
  if (name === undefined || sender === undefined) return ignore("issue, repository or sender is missing");
  if (rules.repositories !== undefined && !rules.repositories.includes(name.repository))
    return ignore("the repository is not in pit.gitea.repositories");
  const issue = objectOf(payload.issue);
  if (!labelNames(issue.labels).includes(rules.label))
    return ignore(`the issue does not have the label ${rules.label}`, UNLABELLED);
  const isLabelEvent = LABEL_ACTIONS.has(String(payload.action));
  const author = loginOf(issue.user);
  const text = textOf(issue.body) ?? "";
  const digest = createHash("sha256").update(text).digest("hex");
  let sighting = before?.labelled === true ? before : UNAPPROVED;
  if (isLabelEvent && (addsLabel(payload, rules.label) ?? before?.labelled !== true)) {
    const refusal = approvalProblem(sender, author, rules.approvers);
    if (refusal !== undefined) return ignore(refusal, UNAPPROVED);
    sighting = { labelled: true, approved_by: sender, text_sha256: digest };
  }
  const { approved_by: approvedBy } = sighting;
  if (approvedBy === null)
    return ignore(
      `no approver has set the label ${rules.label}: remove it, then an approver sets it`,
      sighting,
    );
  if (sighting.text_sha256 !== digest)
    return ignore(
      "the text was edited after the approval: an approver removes the label and sets it again",
      UNAPPROVED,
    );
  if (issue.state !== "open") return ignore("the issue is not open", sighting);
  if (!isLabelEvent) return ignore("no label was changed", sighting);
  const url = textOf(issue.html_url) ?? null;
  const proposal = { ...name, url, author: author!, approvedBy, text, textSha256: digest };
  return { act: "create", proposal, sighting };
}

const UNLABELLED: Sighting = { labelled: false, approved_by: null, text_sha256: null };
const UNAPPROVED: Sighting = { labelled: true, approved_by: null, text_sha256: null };

/** Whether this delivery added the label; undefined for a forge that does not say. */
function addsLabel(payload: JsonObject, label: string): boolean | undefined {
  if (payload.action === "labeled" && isJsonObject(payload.label)) return payload.label.name === label;
  const { added_labels: added, removed_labels: removed } = objectOf(payload.changes);
  if (!Array.isArray(added) && !Array.isArray(removed)) return undefined;
  return labelNames(added).includes(label);
}

function approvalProblem(
  sender: string,
  author: string | undefined,
  approvers: readonly string[] | undefined,
): string | undefined {
  if (approvers === undefined || approvers.length === 0)
    return "no approvers are configured: list them in pit.gitea.approvers";
  // Forges ignore case in user names.
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
  if (!approvers.some((approver) => isSame(approver, sender)))
    return "the user who set the label is not in pit.gitea.approvers";
  if (author === undefined) return "the author of the issue is missing";
  return isSame(author, sender) ? "nobody can approve their own proposal" : undefined;
}

function ignore(reason: string, sighting?: Sighting): Classification {
  return { act: "ignore", reason, ...(sighting === undefined ? {} : { sighting }) };
}

function labelNames(labels: unknown): unknown[] {
  return Array.isArray(labels) ? labels.map((label) => objectOf(label).name) : [];
}

function loginOf(user: unknown): string | undefined {
  return textOf(objectOf(user).login) ?? textOf(objectOf(user).username);
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function isIssueNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
