// Classifies a signed delivery: a proposal that was just approved, or a delivery to ignore, with the reason. Pure. An
// approved proposal that is invalid is an error, because someone is waiting for it.
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";
import { type Answers, invalid, readProposal } from "./form.ts";
import type { GiteaSettings } from "./settings.ts";

export interface Proposal {
  readonly repository: string;
  readonly issue: number;
  readonly url: string | null;
  readonly author: string | null;
  readonly approvedBy: string;
  readonly answers: Answers & { readonly mission: string; readonly goal: string };
}

export type Classification =
  | { readonly act: "create"; readonly proposal: Proposal }
  | { readonly act: "ignore"; readonly reason: string };

/** Gitea and Forgejo send `label_updated`, GitHub and newer Forgejo `labeled`. Opening an issue never approves it. */
const LABELED = new Set(["label_updated", "labeled"]);

export function classifyDelivery(
  eventName: string | null,
  payload: JsonObject,
  rules: Pick<GiteaSettings, "label" | "repositories" | "approvers">,
): Classification {
  if (eventName !== "issues" && eventName !== "issue_label") return ignore("not an issue label event");
  if (!LABELED.has(String(payload.action))) return ignore("no label was changed");
  const issue = objectOf(payload.issue);
  const repository = textOf(objectOf(payload.repository).full_name);
  const approvedBy = textOf(objectOf(payload.sender).login) ?? textOf(objectOf(payload.sender).username);
  const number = issue.number;
  if (repository === undefined || approvedBy === undefined || !isIssueNumber(number))
    return ignore("issue, repository or sender is missing");
  if (isJsonObject(issue.pull_request)) return ignore("it concerns a pull request");
  if (issue.state !== "open") return ignore("the issue is not open");
  const labels = Array.isArray(issue.labels) ? issue.labels.map((label) => objectOf(label).name) : [];
  if (!labels.includes(rules.label)) return ignore(`the issue does not have the label ${rules.label}`);
  if (rules.repositories !== undefined && !rules.repositories.includes(repository))
    return ignore("the repository is not in pit.gitea.repositories");
  if (rules.approvers !== undefined && !rules.approvers.includes(approvedBy))
    return ignore("the user who set the label is not in pit.gitea.approvers");
  const body = textOf(issue.body);
  if (body === undefined) throw invalid("the issue has no text");
  return {
    act: "create",
    proposal: {
      repository,
      issue: number,
      url: textOf(issue.html_url) ?? null,
      author: textOf(objectOf(issue.user).login) ?? null,
      approvedBy,
      answers: readProposal(body),
    },
  };
}

function ignore(reason: string): Classification {
  return { act: "ignore", reason };
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
