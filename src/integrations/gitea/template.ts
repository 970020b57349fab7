// The issue form for mission proposals in Gitea and Forgejo, and its fields: the form is generated from them and the
// answers are parsed with them. Pure.
import { REVIVE_MODES } from "../../pit/record/record.ts";

export interface FormField {
  readonly id: "mission" | "agent" | "revive" | "repository" | "goal" | "done_when";
  /** The heading above the answer in the issue. */
  readonly label: string;
  readonly about: string;
  readonly type: "input" | "dropdown" | "textarea";
  readonly required: boolean;
  readonly maxCharacters: number;
  readonly options?: readonly string[];
  readonly placeholder?: string;
}

/** Single-line fields first, so that multi-line text cannot imitate the answer to an earlier field. */
export const FORM_FIELDS: readonly FormField[] = [
  {
    id: "mission",
    label: "Mission id",
    about: "Letters, digits, '.', '_' and '-'; it names the cell.",
    type: "input",
    required: true,
    maxCharacters: 128,
    placeholder: "tidy-inbox",
  },
  {
    id: "agent",
    label: "Agent",
    about: "The agent to use: claude, codex, a script. This form does not start anything.",
    type: "input",
    required: false,
    maxCharacters: 100,
  },
  {
    id: "revive",
    label: "Revive",
    about: "What the pit should do when the agent dies.",
    type: "dropdown",
    required: false,
    maxCharacters: 20,
    options: REVIVE_MODES,
  },
  {
    id: "repository",
    label: "Repository",
    about: "What the agent should work on.",
    type: "input",
    required: false,
    maxCharacters: 500,
  },
  {
    id: "goal",
    label: "Goal",
    about: "What should be true at the end.",
    type: "textarea",
    required: true,
    maxCharacters: 20_000,
  },
  {
    id: "done_when",
    label: "Done when",
    about: "How to tell that it is done.",
    type: "textarea",
    required: false,
    maxCharacters: 20_000,
  },
];

/** Marks the file, so that only a generated file is replaced. */
export const TEMPLATE_MARK = "made by lazarus gitea install-template";

export function proposalTemplate(approvalLabel: string): string {
  const fields = FORM_FIELDS.map((field) => {
    const lines = [
      `  - type: ${field.type}`,
      `    id: ${field.id}`,
      "    attributes:",
      `      label: ${quote(field.label)}`,
      `      description: ${quote(field.about)}`,
    ];
    if (field.placeholder !== undefined) lines.push(`      placeholder: ${quote(field.placeholder)}`);
    if (field.options !== undefined)
      lines.push("      options:", ...field.options.map((one) => `        - ${quote(one)}`));
    lines.push("    validations:", `      required: ${field.required}`);
    return `${lines.join("\n")}\n`;
  });
  return `# ${TEMPLATE_MARK}
name: Mission proposal
about: Propose a mission for an agent
title: "Mission: "
body:
  - type: markdown
    attributes:
      value: ${quote(`A maintainer approves it with the label "${approvalLabel}"; Lazarus then creates the cell.`)}
${fields.join("")}`;
}

/** A JSON string is a YAML string. */
function quote(text: string): string {
  return JSON.stringify(text);
}
