// What differs between the fake agents: one profile per CLI, as docs/agents.md describes the real one.
import type { JsonObject } from "../../../src/platform/json-file.ts";

/** The conversation as the model sees it. */
export type Message =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly call?: Call }
  | { readonly role: "tool"; readonly id: string; readonly text: string; readonly isError?: boolean };

export interface Call {
  readonly id: string;
  readonly command: string;
}

export interface Place {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What the arguments ask for. */
export interface Request {
  /** One that a plugin sends arrives later. */
  readonly prompt: string | Promise<string>;
  /** Resume this session; "newest": that of the directory. */
  readonly resume?: string | undefined;
  /** A new session with this id. */
  readonly id?: string | undefined;
  /** If there is already a session with this id, it continues. */
  readonly continues?: boolean;
}

export interface Refusal {
  readonly text: string;
  readonly stream: "stdout" | "stderr";
  readonly code: number;
}

/** A command that gets the event on stdin, or code in the agent's own process. */
export type Hook =
  | { readonly matcher?: string; readonly command: string }
  | { readonly run: (input: JsonObject, session: SessionPlace) => void };

export interface SessionPlace {
  readonly id: string;
  readonly path: string;
  readonly cwd: string;
}

/** How the lines of a session are kept. */
export interface Store {
  readonly append: (path: string, id: string, lines: readonly JsonObject[]) => void;
  readonly read: (path: string, id: string) => readonly JsonObject[];
}

export type Moment =
  | { readonly kind: "session"; readonly resumed: boolean }
  | { readonly kind: "prompt"; readonly text: string }
  | { readonly kind: "before-tool"; readonly call: Call }
  | { readonly kind: "after-tool"; readonly call: Call; readonly text: string }
  | { readonly kind: "done"; readonly text: string }
  | { readonly kind: "failure"; readonly status: number; readonly text: string }
  | { readonly kind: "session-end"; readonly reason: string };

export type Hooks = Readonly<Record<string, readonly Hook[]>>;

export interface Profile {
  readonly name: string;
  /** The recorded process only starts the real one. `ignores`: it does not react to SIGTERM. */
  readonly wrapper: "none" | "forwards" | "ignores";
  /** The variable that avoids the wrapper. */
  readonly noWrapper?: string;
  readonly codeOnSigterm: number;
  /** Why it starts over after a death instead of resuming its session. */
  readonly cannotResume?: string;
  /** Why its conversation is not part of a checkpoint. */
  readonly notCaptured?: string;
  /** The id of a new session; default a UUID. */
  readonly newId?: () => string;
  readonly parse: (args: readonly string[]) => Request;
  /** A new session's file. Relative paths are not allowed. */
  readonly newFile: (place: Place, id: string, atMs: number) => string;
  /** The file of a session, to resume it; undefined when there is none. */
  readonly findFile: (
    place: Place,
    id: string | "newest",
  ) => { readonly path: string; readonly id: string } | undefined;
  /** Lines at the start of a new session's file, or appended by a resume. */
  readonly header: (place: Place, id: string, resumed: boolean) => readonly JsonObject[];
  /** Default: a file with one JSON document per line. */
  readonly store?: Store;
  /** Whether a call is in the transcript before it runs. */
  readonly writesCallFirst: boolean;
  /** What is in the transcript before a call that is not written first. */
  readonly before?: (message: Message) => readonly JsonObject[];
  readonly lines: (message: Message, place: Place, id: string) => readonly JsonObject[];
  readonly read: (lines: readonly JsonObject[]) => readonly Message[];
  /** What takes the place of a cut-off call's result on resume; null: the call is forgotten. */
  readonly placeholder: string | null;
  /** The placeholder is made up for each request, and never written. */
  readonly inventsPlaceholder?: true;
  readonly announce?: (id: string) => string;
  /** Null when it starts a session with an unknown id. */
  readonly unknownSession: ((id: string) => Refusal) | null;
  readonly errors: Readonly<Record<number, Refusal>>;
  readonly noKey: Refusal & { readonly variable: string };
  /** The lines that an API error leaves in the transcript. */
  readonly errorLines?: (refusal: Refusal, place: Place, id: string) => readonly JsonObject[];
  /** Hooks by event, from the arguments and the files of the user. */
  readonly hooks: (args: readonly string[], place: Place) => Hooks | Promise<Hooks>;
  /** The events of a moment, with what their hooks get on stdin. */
  readonly events: (
    moment: Moment,
    session: SessionPlace,
  ) => readonly {
    readonly event: string;
    readonly tool?: string;
    readonly input: JsonObject;
  }[];
}
