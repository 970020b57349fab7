// The job that the mock model gives an agent: write chapter-1.md … chapter-N.md with the agent's own shell tool, one per
// response. It keeps no state: which chapter is next is read from the conversation that the client sends, so a client that
// lost its conversation starts over at chapter 1.

export interface JobOptions {
  readonly steps: number;
  /** Seconds that a step takes between its effect and its file. */
  readonly hold: number;
  /** How long the model takes to answer; default 0. */
  readonly thinkMs?: number;
}

export interface Offered {
  readonly name: string;
  /** Properties of the tool's schema; strict clients refuse others. */
  readonly properties: Readonly<Record<string, unknown>> | undefined;
}

export interface Call {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly text: string;
  readonly call?: Call | undefined;
}

/** A conversation as any client sends it. */
export interface Conversation {
  readonly offered: readonly Offered[];
  /** The input of each call as text, by id. */
  readonly calls: ReadonlyMap<string, string>;
  readonly results: readonly { readonly id: string; readonly text: string; readonly isError: boolean }[];
  /** What is not from the model. */
  readonly prompts: readonly string[];
  readonly messages: number;
  readonly isStream: boolean;
  readonly wantsJson: boolean;
}

/** The shell tools of all clients. */
const SHELL_TOOLS: Readonly<Record<string, (line: string, n: number) => Record<string, unknown>>> = {
  Bash: (line, n) => ({ command: line, description: `Write chapter ${n}` }),
  bash: (line, n) => ({ command: line, description: `Write chapter ${n}` }),
  run_shell_command: (line, n) => ({
    command: line,
    description: `Write chapter ${n}`,
    is_background: false,
  }),
  exec_command: (line) => ({ cmd: line, yield_time_ms: 10_000 }),
  shell_command: (line) => ({ command: line }),
  shell: (line) => ({ command: ["bash", "-lc", line] }),
  execute_command: (line) => ({ command: line, requires_approval: false }),
  run_commands: (line) => ({ commands: [line] }),
  exec: (line) => ({ command: line }),
};

/** The effect comes first, then the wait in which a kill hurts most, then the file. */
function shellLine(n: number, hold: number, look: boolean): string {
  const effect = `${look ? `grep -qx ${n} outbox.log || ` : ""}echo ${n} >> outbox.log`;
  return `${effect}; sleep ${hold}; echo "chapter ${n}" > chapter-${n}.md; echo wrote chapter-${n}.md`;
}

function callFor(n: number, offered: readonly Offered[], hold: number, look: boolean): Call | undefined {
  const tool = offered.find(({ name }) => Object.hasOwn(SHELL_TOOLS, name));
  if (tool === undefined) return undefined;
  const input = Object.entries(SHELL_TOOLS[tool.name]!(shellLine(n, hold, look), n));
  const known = input.filter(([key]) => tool.properties === undefined || key in tool.properties);
  return { name: tool.name, input: Object.fromEntries(known) };
}

/** A step prints that it was done; clients insert their own text where a result is missing. */
function isGood({ text, isError }: Conversation["results"][number]): boolean {
  return !isError && /wrote chapter-\d/.test(text.replaceAll(/echo wrote chapter-\d/g, ""));
}

function chapterOf(call: string | undefined): number {
  return Number(/chapter-(\d+)/.exec(call ?? "")?.[1] ?? 0);
}

export interface Turn {
  /** The chapter to write, "done", or "side": a question that offers no tool, such as for a title. */
  readonly next: number | "done" | "side";
  /** The conversation says that the call for this chapter was cut off. */
  readonly isTold: boolean;
  readonly answer: Answer;
}

/** The model's response to this conversation. Told that a call was cut off, it checks before it repeats the effect. */
export function nextTurn(conversation: Conversation, { steps, hold }: JobOptions): Turn {
  const { calls, results, prompts, offered } = conversation;
  const done = results.filter(isGood).map(({ id }) => chapterOf(calls.get(id)));
  const next = Math.max(0, ...done) + 1;
  const isTold = isCutOff(next, conversation);
  const call = callFor(next, offered, hold, isTold);
  const isSide = call === undefined || prompts.some((text) => /just say hello/i.test(text));
  if (isSide) return { next: "side", isTold: false, answer: { text: "Writing a book" } };
  if (next > steps) return { next: "done", isTold: false, answer: { text: "The book is done." } };
  return { next, isTold, answer: { text: `Now chapter ${next}.`, call } };
}

function isCutOff(chapter: number, { calls, results, prompts }: Conversation): boolean {
  const bad = results.some((result) => !isGood(result) && chapterOf(calls.get(result.id)) === chapter);
  const told = (text: string) =>
    new RegExp(`chapter-${chapter}\\b`).test(text) &&
    /unknown|not known|interrupted|cut off|killed/i.test(text);
  // The first prompt is the task, unless a life that starts over gets a note about the previous one.
  return bad || prompts.some((text, index) => (index > 0 || text.includes("[Lazarus]")) && told(text));
}
