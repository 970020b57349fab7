// What Lazarus knows about one agent CLI: how to recognize its command line, name and find its conversation, resume it, and
// read what it reports. An adapter is data and pure functions; it never writes. What it has to read (a directory listing,
// the start of a file) it gets from the caller as a `SessionReader`. One file per agent in adapters/; users declare more in
// their config (declared.ts). One conformance suite runs for all of them (test/agents).

export const PATTERN_CLASSES = ["quota", "overload", "auth", "permanent"] as const;

/** What an agent's output or hook can say about its failure. */
export type PatternClass = (typeof PATTERN_CLASSES)[number];

/** Regular expressions by class, each for one line of output, matched without regard to case. */
export type FailurePatterns = Readonly<Partial<Record<PatternClass, readonly string[]>>>;

/** Where an agent runs, which decides where its conversation is. */
export interface Place {
  /** The agent's working directory, with links resolved. */
  readonly cwd: string;
  readonly home: string;
  /** The agent's environment: CLAUDE_CONFIG_DIR, CODEX_HOME … move the conversation. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Symbolic links on the way to its conversations that were there when the user started it, by path, and where each led
   * (trust-links.ts). Only these are followed.
   */
  readonly links?: Readonly<Record<string, string>>;
}

/** An agent's command line, split by `recognize`: `[...prefix, program, ...args]` is what the user typed. */
export interface CommandLine {
  /** What comes before the program: `env A=1`, `npx --yes`, … Empty for a plain command. */
  readonly prefix: readonly string[];
  readonly program: string;
  readonly args: readonly string[];
}

/** What the arguments mean. */
export interface Invocation {
  /** Runs without a terminal and exits when it is done (`-p`, `exec`, `run`). */
  readonly isHeadless: boolean;
  /** Null: the prompt is typed or comes from stdin. */
  readonly prompt: string | null;
  /** The session that the user chose: by its id, or the newest one (`--continue`, `--last`). Null: a new one. */
  readonly session: { readonly id: string } | "newest" | null;
  /** Set for subcommands without a conversation (`claude mcp list`, `codex login`): Lazarus adds nothing to them. */
  readonly isUtility: boolean;
}

/** A file of a session, or the part of a database that belongs to it. */
export interface SessionFile {
  /** Absolute. */
  readonly path: string;
  /** Name in the checkpoint, below `conversation/<adapter>/`; relative, stable across machines and directories. */
  readonly name: string;
  /**
   * lines: append-only text. whole: replaced as a whole. sqlite: a database of this mission alone. shared: a database that
   * also holds other sessions; it is only read, neither captured nor restored.
   */
  readonly kind: "lines" | "whole" | "sqlite" | "shared";
}

/** What an adapter may read. Paths outside its own directories are refused by the caller. */
export interface SessionReader {
  /** Names in a directory; empty when there is none. */
  list(directory: string): readonly { readonly name: string; readonly isDirectory: boolean }[];
  /** The first bytes of a file as text; undefined when it cannot be read. */
  head(path: string, bytes: number): string | undefined;
  /** Birth or, where unknown, modification time; undefined when the file is gone. */
  createdMs(path: string): number | undefined;
}

/** A tool call in the conversation. */
export interface ToolCall {
  /** The model's id of the call; null where the agent has none. */
  readonly id: string | null;
  readonly tool: string;
  /** One line for people: a shell command, a path. At most 200 characters, secrets redacted by the caller. */
  readonly summary: string;
  /** The whole shell command, if it is one: effect rules are matched against it. */
  readonly command: string | null;
}

/** The position of a conversation. */
export interface Position {
  /** Responses of the model so far; the texts and calls of one response count once. */
  readonly turn: number;
  /** The last tool call; null before the first. */
  readonly last: ToolCall | null;
  /** Calls without a result, oldest first. */
  readonly open: readonly ToolCall[];
  /** The agent has finished: no call is open, and the last entry ends a turn. */
  readonly isFinished: boolean;
  /** Lines that are not valid: a transcript that was cut off or damaged. A cut last line does not count. */
  readonly damagedLines: number;
}

/** One entry of a transcript for people (`lazarus conversation`). */
export interface TranscriptEntry {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly text: string;
  readonly call: ToolCall | null;
  readonly atMs: number | null;
}

/** Pure functions of the text of a session's files, in the order of `sessionFiles`. */
export interface TranscriptReader {
  position(files: readonly TranscriptText[]): Position;
  /**
   * For append-only files that grow large: continues from `before`, which an earlier call returned, with what was appended
   * to each file since (whole lines, without `whole` files). The result equals `position` of all the text. Without this
   * function, every checkpoint reads everything.
   */
  follow?(before: Followed | null, appended: readonly TranscriptText[]): Followed;
  /** For databases: SQL with the session as its only parameter, in the order of the conversation; a row is a JSON line. */
  readonly query?: string;
  entries(files: readonly TranscriptText[]): readonly TranscriptEntry[];
}

export interface Followed {
  readonly position: Position;
  /** JSON of limited size: what the next lines need, such as the id of the last response. */
  readonly memory: unknown;
}

export interface TranscriptText {
  readonly name: string;
  /** Lines of `lines` files; rows of a database as JSON lines, as `query` returns them. */
  readonly text: string;
}

/** What a hook reported, in the same terms for all agents. Appended by `lazarus hook` to hooks.jsonl. */
export type HookEvent =
  | { readonly kind: "session"; readonly session: string; readonly transcript: string | null }
  | { readonly kind: "prompt" }
  | { readonly kind: "tool-start"; readonly call: ToolCall }
  | { readonly kind: "tool-end"; readonly call: ToolCall }
  | { readonly kind: "turn-end" }
  | { readonly kind: "failure"; readonly class: PatternClass; readonly message: string }
  | { readonly kind: "compaction" }
  | { readonly kind: "session-end"; readonly reason: string };

/** How hooks are passed for one run, without installing anything. */
export interface HookSetup {
  /** Options to put before all other arguments: after an option with many values, they would be taken as its values. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables for hooks that are installed, where none are passed. */
  readonly installedEnv?: Readonly<Record<string, string>>;
  /** Files to write (0600) below `directory` before the start; a name may contain directories (0700). */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

/** A change of a user's config file by `lazarus install`: text before (null: no file) to text after. */
export interface InstallPlan {
  readonly path: string;
  /** Permission bits of a new file; default 0600. */
  readonly mode?: number;
  /** The file with our hooks; equal to the input when they are already there. Refuses (throws) a file it cannot parse. */
  apply(text: string | null): string;
  /** The file without our hooks, for one that was changed since `apply`; null when nothing else is in it. */
  remove(text: string): string | null;
}

export interface Adapter {
  readonly name: string;
  /** The newest version that the tests ran with; a newer one gets a note in `doctor`, nothing is refused. */
  readonly testedVersion: string;
  /** File names of the program. */
  readonly programs: readonly string[];
  /** npm packages, for `npx` and for a path into node_modules. */
  readonly packages: readonly string[];
  readonly parse: (args: readonly string[]) => Invocation;
  /** Chosen before the start; `found` when the agent chooses its own (hook, output, newest transcript of the directory). */
  readonly sessionIds: "chosen" | "found";
  readonly isSessionId: (text: string) => boolean;
  /** The arguments of a first life: with the chosen id where the CLI takes one. */
  readonly start: (args: readonly string[], session: string | null) => readonly string[];
  /**
   * The arguments of a revival: the user's options, the session, and the note as the prompt (interactive: as the first
   * prompt). Null when this CLI cannot resume this invocation; then `start` is used.
   */
  readonly resume: (args: readonly string[], session: string, note: string) => readonly string[] | null;
  /**
   * How a revived model gets the note where the prompt cannot contain it: our plugin sends it (`hook`), or nothing does and
   * the agent waits for its user (`user`).
   */
  readonly noteDelivery?: (args: readonly string[]) => "hook" | "user" | null;
  /** The arguments of a life that starts over, with the note before the user's prompt. */
  readonly restart: (args: readonly string[], session: string | null, note: string) => readonly string[];
  /** Variables for every life, such as the path of the mission's own database. `directory` is in the cell's state. */
  readonly env?: (place: Place, directory: string) => Readonly<Record<string, string>>;
  /**
   * For the mission's own database (`env`): the user's database that it starts as a copy of, when the user continues a session
   * from there. Rows of `secrets` are not copied.
   */
  readonly seed?: (
    place: Place,
    directory: string,
  ) => { readonly from: string; readonly to: string; readonly secrets: readonly string[] };
  /** It is unknown where the agent keeps its conversations; a session that it reported is assumed to exist. */
  readonly filesAreUnknown?: true;
  /** Its database holds other sessions as well: a checkpoint has the position of the conversation, and no more. */
  readonly positionOnly?: true;
  /** Existing files of a session. */
  readonly sessionFiles: (place: Place, session: string, reader: SessionReader) => readonly SessionFile[];
  /** Where a file with this name belongs; null for a name that this adapter never uses (hostile input). */
  readonly pathOf: (place: Place, session: string, name: string, reader: SessionReader) => string | null;
  /** Sessions of this directory created since then, newest last. */
  readonly findSessions: (place: Place, sinceMs: number, reader: SessionReader) => readonly string[];
  /** The session id in a line of output; null when it names none. */
  readonly sessionInOutput?: (line: string) => string | null;
  readonly transcript: TranscriptReader;
  readonly patterns: FailurePatterns;
  /** A line of output that says the session to resume does not exist. */
  readonly unknownSession: { readonly exitCodes: readonly number[]; readonly patterns: readonly string[] };
  /** Whether the arguments and the exit code 0 alone prove that the agent has finished; false where SIGTERM exits 0. */
  readonly exitZeroMeansFinished: boolean;
  /** What the agent itself tells the model about a cut-off call, so that the note can contradict it; null: nothing. */
  readonly placeholder: string | null;
  readonly hooks: {
    /**
     * Per run; null when this CLI only reads installed hooks. `command` runs `lazarus hook <name>`; `directory` is where
     * the setup's files are written, outside the cell: `args` and `env` name them by it. `env` is the agent's environment:
     * the user may have set the same variable. `resumed` is the session that this life continues.
     */
    readonly perRun:
      | ((command: readonly string[], directory: string, env: Place["env"], resumed?: string) => HookSetup)
      | null;
    /** One line of stdin (or the argument) to events; empty for an event that Lazarus does not use. */
    readonly parse: (event: string, input: Readonly<Record<string, unknown>>) => readonly HookEvent[];
    /** Where `lazarus install` puts them; empty when hooks are always passed per run. */
    readonly install: (place: Place, command: readonly string[]) => readonly InstallPlan[];
  };
  /**
   * Passes our MCP server for one run; absent when this CLI only reads servers that are registered. `command` runs `lazarus mcp`;
   * `env` is the agent's environment, with the variables of the hooks.
   */
  readonly mcp?: (command: readonly string[], env: Place["env"]) => Pick<HookSetup, "args" | "env">;
  /** File names that hold credentials, relative to `home`: never captured. */
  readonly credentials: readonly string[];
}
