// Agent Skills: directories with a SKILL.md and other files. The model sees names and descriptions in its prompt, and opens
// what it needs with one tool, which never reads outside the skill's directory.
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import type { DurableTool } from "../kernel/agent.ts";
import { readFrontMatter, textOf } from "./front-matter.ts";

/** One skill. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly directory: string;
}

/** Skills as the prompt and tools of an agent. */
export interface SkillSet {
  readonly skills: readonly Skill[];
  /** To append to an agent's instructions; empty when there are no skills. */
  readonly prompt: string;
  /** `open_skill`; empty when there are no skills. */
  readonly tools: Readonly<Record<string, DurableTool>>;
}

const MAX_BYTES = 256 * 1024;

/** Reads every subdirectory that has a SKILL.md; `directory` may be missing. */
export async function loadSkills(directory: string): Promise<SkillSet> {
  const skills = existsSync(directory)
    ? readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, "SKILL.md")))
        .map((entry) => loadSkill(join(directory, entry.name)))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    : [];
  const duplicate = skills.find((skill, i) => skills[i - 1]?.name === skill.name);
  if (duplicate !== undefined) {
    throw new LazarusError(
      "SKILL_INVALID",
      `${duplicate.directory}: another skill is already named ${duplicate.name}`,
      {
        hint: "rename one of them",
      },
    );
  }
  if (skills.length === 0) return { skills, prompt: "", tools: {} };
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  return {
    skills,
    prompt: `You have these skills. Before you use one, read it with open_skill.\n${lines.join("\n")}`,
    tools: { open_skill: await openSkillTool(skills) },
  };
}

function loadSkill(directory: string): Skill {
  const path = join(directory, "SKILL.md");
  const { head } = readFrontMatter(path, "SKILL_INVALID");
  const name = textOf(head, "name");
  const description = textOf(head, "description");
  if (name === undefined || description === undefined) {
    throw new LazarusError("SKILL_INVALID", `${path}: a skill needs a name and a description`, {
      hint: `edit ${path}`,
    });
  }
  return { name, description, directory };
}

async function openSkillTool(
  skills: readonly Skill[],
): Promise<DurableTool<{ skill: string; file?: string }, string>> {
  const { jsonSchema } = await import("ai");
  return {
    description: "Reads a skill's SKILL.md, or a file that it mentions.",
    effect: "read",
    inputSchema: jsonSchema({
      type: "object",
      properties: { skill: { type: "string" }, file: { type: "string" } },
      required: ["skill"],
      additionalProperties: false,
    }),
    execute({ skill: name, file = "SKILL.md" }) {
      const skill = skills.find((each) => each.name === name);
      if (skill === undefined) throw new Error(`no skill ${name}`);
      return readSkillFile(skill, file);
    },
  };
}

function readSkillFile(skill: Skill, file: string): string {
  const root = realpathSync(skill.directory);
  const path = resolve(root, file);
  // Checked on the real path too: a symlink may point outside.
  const inside = (each: string) => each.startsWith(root + sep);
  if (!inside(path) || !existsSync(path) || !inside(realpathSync(path)) || !statSync(path).isFile()) {
    throw new Error(`skill ${skill.name} has no file ${file}`);
  }
  if (statSync(path).size > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES} bytes`);
  return readFileSync(path, "utf8");
}
