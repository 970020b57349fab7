// Reads the answers of a proposal out of an issue's text. The text is a stranger's: it is data, bounded and cleaned of
// control characters, and a form that could be read in two ways is refused. Pure.
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
    if (answers.has(field.id)) throw invalid(`the heading "${field.label}" stands in it twice`);
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
  // Line breaks and tabs stay; what could move a cursor or end a string does not.
  const answer = text
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, "\ufffd")
    .trim();
  if (answer === "" || answer === NO_ANSWER) return undefined;
  if (answer.length > field.mostCharacters)
    throw invalid(`"${field.label}" has more than ${field.mostCharacters} characters`);
  if (field.type !== "textarea" && answer.includes("\n"))
    throw invalid(`"${field.label}" has more than one line`);
  if (field.options !== undefined && !field.options.includes(answer))
    throw invalid(`"${field.label}" is not one of ${field.options.join(", ")}`);
  return answer;
}

export function invalid(reason: string): LazarusError {
  return new LazarusError("PROPOSAL_INVALID", `the proposal cannot be used: ${reason}`, {
    hint: "edit the issue to fit the form, take the label off and put it on again",
  });
}
