// Personas: agent definitions in Markdown files. The front matter has name, description, tools and limits; the text is
// the instructions. Tools are chosen by name from those that the host offers.
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import { type Agent, isAgentId, type ToolSet } from "../kernel/agent.ts";
import { readFrontMatter, textOf } from "./front-matter.ts";

/** An agent read from a file. */
export interface Persona {
  readonly name: string;
  readonly description: string;
  readonly agent: Agent;
}

/** Reads every `*.md` file of a directory, which may be missing. Throws PERSONA_INVALID for an invalid file. */
export function loadPersonas(directory: string, tools: ToolSet = {}): Map<string, Persona> {
  const personas = new Map<string, Persona>();
  if (!existsSync(directory)) return personas;
  for (const file of readdirSync(directory).sort()) {
    if (!file.endsWith(".md")) continue;
    const persona = loadPersona(join(directory, file), tools);
    if (personas.has(persona.name)) {
      throw invalid(join(directory, file), `persona ${persona.name} is already defined in another file`);
    }
    personas.set(persona.name, persona);
  }
  return personas;
}

/** Reads one file. Its name is the default name of the persona. */
export function loadPersona(path: string, tools: ToolSet = {}): Persona {
  const { head, text } = readFrontMatter(path, "PERSONA_INVALID");
  const name = textOf(head, "name") ?? basename(path, ".md");
  if (!isAgentId(name)) {
    throw invalid(
      path,
      `${JSON.stringify(name)} is not a valid agent name: use letters, digits and ._:@/- without spaces`,
    );
  }
  const wanted = head.tools === undefined ? Object.keys(tools) : head.tools;
  if (!Array.isArray(wanted) || !wanted.every((each) => typeof each === "string")) {
    throw invalid(path, "tools must be a list of names");
  }
  const missing = wanted.find((each) => !Object.hasOwn(tools, each));
  if (missing !== undefined) {
    throw invalid(
      path,
      `tool ${missing} is not available; this host has: ${Object.keys(tools).join(", ") || "none"}`,
    );
  }
  const maxIterations = head.max_iterations;
  if (maxIterations !== undefined && !(Number.isInteger(maxIterations) && (maxIterations as number) > 0)) {
    throw invalid(path, "max_iterations must be a positive integer");
  }
  const tier = textOf(head, "model");
  return {
    name,
    description: textOf(head, "description") ?? "",
    agent: {
      id: name,
      name,
      instructions: text,
      tools: Object.fromEntries(wanted.map((each) => [each, tools[each]!])),
      ...(tier === undefined ? {} : { modelTier: tier }),
      ...(maxIterations === undefined ? {} : { maxIterations: maxIterations as number }),
    },
  };
}

function invalid(path: string, what: string): LazarusError {
  return new LazarusError("PERSONA_INVALID", `${path}: ${what}`, { hint: `edit ${path}` });
}
