// Parses the answers of a proposal from the text of an issue. The text is untrusted: it is limited in size, control
// characters are replaced, and an ambiguous form is refused. Pure.
import { parseMissionId } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { FORM_FIELDS, type FormField } from "./template.ts";

export type Answers = { readonly [K in FormField["id"]]?: string };

const NO_ANSWER = "_No response_";

export function readProposal(text: string): Answers & { readonly mission: string; readonly goal: string } {
  const byLabel = new Map(FORM_FIELDS.map((field) => [`### ${field.label}`, field]));
  const answers = new Map<FormField["id"], string[]>();
  let lines: string[] | undefined;
  for (const line of text.split(/\r\n|\r|\n/)) {
    const field = byLabel.get(line.trimEnd());
    if (field === undefined) {
      lines?.push(line);
      continue;
    }
    if (answers.has(field.id)) throw invalid(`the heading "${field.label}" appears twice`);
    lines = [];
    answers.set(field.id, lines);
  }
  const result: Record<string, string> = {};
  for (const field of FORM_FIELDS) {
    const answer = clean((answers.get(field.id) ?? []).join("\n"), field);
    if (answer !== undefined) result[field.id] = answer;
    else if (field.required) throw invalid(`"${field.label}" has no answer`);
  }
  parseMissionId(result.mission!);
  return result as Answers & { mission: string; goal: string };
}

function clean(text: string, field: FormField): string | undefined {
  // Keep line breaks and tabs; replace other control characters.
  const answer = text
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, "\ufffd")
    .trim();
  if (answer === "" || answer === NO_ANSWER) return undefined;
  if (answer.length > field.maxCharacters)
    throw invalid(`"${field.label}" has more than ${field.maxCharacters} characters`);
  if (field.type !== "textarea" && answer.includes("\n"))
    throw invalid(`"${field.label}" has more than one line`);
  if (field.options !== undefined && !field.options.includes(answer))
    throw invalid(`"${field.label}" is not one of ${field.options.join(", ")}`);
  return answer;
}

export function invalid(reason: string): LazarusError {
  return new LazarusError("PROPOSAL_INVALID", `invalid proposal: ${reason}`, {
    hint: "edit the issue to fit the form, then remove the label and add it again",
  });
}
