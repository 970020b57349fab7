// Skills: Agent Skill folders (SKILL.md with a head, and files beside it) as a few lines of prompt and one reading tool.
// The model sees names and descriptions, and opens what it needs; a path never leads out of the skill's folder.
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import type { DurableTool } from "../kernel/agent.ts";
import { readFrontMatter, textOf } from "./front-matter.ts";

/** One skill folder. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly directory: string;
}

/** Skills as an agent uses them. */
export interface SkillSet {
  readonly skills: readonly Skill[];
  /** To append to an agent's instructions; empty when there are no skills. */
  readonly prompt: string;
  /** `open_skill`; no tool when there are no skills. */
  readonly tools: Readonly<Record<string, DurableTool>>;
}

const LARGEST_BYTES = 256 * 1024;

/** Reads every folder below `directory` that has a SKILL.md; none when it does not exist. */
export async function loadSkills(directory: string): Promise<SkillSet> {
  const skills = existsSync(directory)
    ? readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, "SKILL.md")))
        .map((entry) => loadSkill(join(directory, entry.name)))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    : [];
  const twin = skills.find((skill, i) => skills[i - 1]?.name === skill.name);
  if (twin !== undefined) {
    throw new LazarusError(
      "SKILL_INVALID",
      `${twin.directory}: another skill is already called ${twin.name}`,
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
      if (skill === undefined) throw new Error(`there is no skill ${name}`);
      return readSkillFile(skill, file);
    },
  };
}

function readSkillFile(skill: Skill, file: string): string {
  const root = realpathSync(skill.directory);
  const path = resolve(root, file);
  // Checked again on the real path: a link inside the folder may lead out of it.
  const inside = (each: string) => each.startsWith(root + sep);
  if (!inside(path) || !existsSync(path) || !inside(realpathSync(path)) || !statSync(path).isFile()) {
    throw new Error(`skill ${skill.name} has no file ${file}`);
  }
  if (statSync(path).size > LARGEST_BYTES) throw new Error(`${file} is larger than ${LARGEST_BYTES} bytes`);
  return readFileSync(path, "utf8");
}
