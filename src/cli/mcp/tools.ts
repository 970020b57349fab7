// The tools of `lazarus mcp`: each is a command of Lazarus for the agent's own mission, and returns what the command prints with
// --json (docs/cli-json.md). Values are always part of one word, after `=` or `--`, and never become options.
import { z } from "zod";
import type { OwnMission } from "./own-mission.ts";
import { cellPathOf } from "./own-mission.ts";

export interface ToolSpec {
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodRawShape;
  readonly readOnly: boolean;
  /** May overwrite or repeat something; only for tools that are not read-only. */
  readonly destructive?: boolean;
  /** The command line. */
  readonly words: (own: OwnMission, input: Record<string, never>) => readonly string[];
}

const checkpoint = z
  .string()
  .describe("a checkpoint: its id, latest, or a time such as 10m or 14:30")
  .default("latest");
const path = z.string().describe("a file, absolute or relative to the working directory");
const workflow = z.string().describe("id of the workflow: letters, digits, dashes");

const option = (name: string, value: unknown): string[] =>
  value === undefined ? [] : [`--${name}=${String(value)}`];
const options = (name: string, values: readonly string[] = []): string[] =>
  values.map((value) => `--${name}=${value}`);
const flag = (name: string, isSet: boolean | undefined): string[] => (isSet ? [`--${name}`] : []);

/** Keeps the types of the input next to its schema. */
function tool<const S extends z.ZodRawShape>(
  spec: Omit<ToolSpec, "input" | "words"> & {
    readonly input: S;
    readonly words: (own: OwnMission, input: z.infer<z.ZodObject<S>>) => readonly string[];
  },
): ToolSpec {
  return spec as unknown as ToolSpec;
}

export const TOOLS: Readonly<Record<string, ToolSpec>> = {
  status: tool({
    title: "Status of this mission",
    description:
      "What Lazarus knows about this mission: its agent, checkpoints, flows, and effects with an unknown outcome.",
    input: {},
    readOnly: true,
    words: ({ mission }) => ["status", "--json", "--", mission],
  }),
  checkpoint: tool({
    title: "Save a checkpoint",
    description:
      "Saves the files, flows and conversation of this mission. Use it before a risky or large change.",
    input: { message: z.string().max(500).describe("why, in a few words; no secrets").optional() },
    readOnly: false,
    destructive: false,
    words: ({ mission }, { message }) => [
      "checkpoint",
      "--json",
      ...option("message", message),
      "--",
      mission,
    ],
  }),
  list_checkpoints: tool({
    title: "List checkpoints",
    description: "The checkpoints of this mission, newest last.",
    input: { limit: z.int().min(1).max(1000).default(20) },
    readOnly: true,
    words: ({ mission }, { limit }) => ["checkpoints", "--json", option("last", limit)[0]!, "--", mission],
  }),
  diff: tool({
    title: "What changed",
    description: "Compares two checkpoints, or a checkpoint with the files as they are now.",
    input: {
      from: checkpoint,
      to: z.string().describe("a second checkpoint; now by default").optional(),
      paths: z.array(path).describe("only these files").optional(),
      content: z.boolean().describe("with the changed lines of text files").optional(),
    },
    readOnly: true,
    words: (own, { from, to, paths, content }) => [
      ...["diff", "--json", ...flag("content", content)],
      ...options(
        "path",
        paths?.map((each) => cellPathOf(own, each)),
      ),
      ...["--", own.mission, from, ...(to === undefined ? [] : [to])],
    ],
  }),
  search_versions: tool({
    title: "Versions of a file",
    description: "Which checkpoints have which versions of a file, to choose one for restore_file.",
    input: { path },
    readOnly: true,
    words: (own, input) => ["versions", "--json", "--", own.mission, cellPathOf(own, input.path)],
  }),
  read_version: tool({
    title: "Read a file as it was",
    description: "The content of a file in a checkpoint, without changing anything.",
    input: { path, checkpoint },
    readOnly: true,
    words: (own, input) => ["cat", "--", `${own.mission}:${input.checkpoint}`, cellPathOf(own, input.path)],
  }),
  flow_list: tool({
    title: "List flows",
    description: "The restart-safe lists of steps in this workspace.",
    input: {},
    readOnly: true,
    words: ({ worktree }) => ["flow", "list", "--json", `--root=${worktree}`],
  }),
  flow_start: tool({
    title: "Start a flow",
    description:
      "Creates a restart-safe list of steps, so that work continues at the right step after a restart.",
    input: {
      workflow,
      agent: z.string().describe("your name"),
      idempotency: z.string().describe("unique key of this work, such as deploy-42-prod"),
      steps: z.array(z.string()).min(1),
    },
    readOnly: false,
    destructive: false,
    words: ({ worktree }, { workflow: id, agent, idempotency, steps: [first, ...rest] }) => [
      ...["flow", "start", "--json", `--root=${worktree}`, `--workflow=${id}`, `--agent=${agent}`],
      ...[`--idempotency=${idempotency}`, `--step=${first}`, ...options("remaining", rest)],
    ],
  }),
  flow_update: tool({
    title: "Record progress of a flow",
    description: "Marks steps as done and sets the current step.",
    input: {
      workflow,
      complete: z.array(z.string()).describe("steps that are done").optional(),
      step: z.string().describe("the new current step").optional(),
      notes: z.string().describe("for the next owner; no secrets").optional(),
    },
    readOnly: false,
    destructive: false,
    words: ({ worktree }, { workflow: id, complete, step, notes }) => [
      ...["flow", "update", "--json", `--root=${worktree}`, `--workflow=${id}`],
      ...[...options("complete", complete), ...option("step", step), ...option("notes", notes)],
    ],
  }),
  flow_finish: tool({
    title: "Finish a flow",
    description: "Marks a flow as complete, failed or blocked.",
    input: { workflow, outcome: z.enum(["complete", "fail", "block"]), notes: z.string().optional() },
    readOnly: false,
    destructive: false,
    words: ({ worktree }, { workflow: id, outcome, notes }) => [
      ...["flow", outcome, "--json", `--root=${worktree}`, `--workflow=${id}`, ...option("notes", notes)],
    ],
  }),
  once: tool({
    title: "Run a command at most once",
    description:
      "Runs a command that must not happen twice (mail, push, payment). After a restart the recorded output is returned " +
      "instead. An unknown outcome is reported: check first, then use retry_unknown.",
    input: {
      workflow,
      key: z.string().describe("identifies the command in the workflow"),
      command: z.array(z.string()).min(1).describe("program and arguments; no shell"),
      retry_unknown: z.boolean().describe("run it again although its outcome is unknown").optional(),
    },
    readOnly: false,
    destructive: true,
    words: ({ worktree }, { workflow: id, key, command, retry_unknown: retry }) => [
      ...["flow", "once", "--json", `--root=${worktree}`, `--workflow=${id}`, `--key=${key}`],
      ...[...flag("retry-unknown", retry), "--", ...command],
    ],
  }),
};
