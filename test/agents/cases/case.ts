// What the conformance suite needs to know about one agent. One file per adapter in this folder exports `cases`.
import type {
  Adapter,
  HookEvent,
  Invocation,
  PatternClass,
  Place,
  Position,
} from "../../../src/agents/adapter.ts";
import type { MemoryFile } from "../memory-reader.ts";

/** A realistic directory name: with a dot, a space and a capital. */
export const PLACE: Place = { cwd: "/home/Ann/my app.v2", home: "/home/Ann", env: {} };
export const SESSION = "0b0c1d2e-1111-4222-8333-444455556666";
export const OTHER_SESSION = "99999999-1111-4222-8333-444455556666";

export interface AdapterCases {
  readonly adapter: Adapter;
  readonly session: string;
  /** Command lines that start it, beyond `PROGRAM …`. */
  readonly commands: readonly (readonly string[])[];
  readonly parse: readonly (readonly [args: readonly string[], Partial<Invocation>])[];
  /** Arguments with a prompt, the arguments of a first life, of a revival and of a life that starts over with a note. */
  readonly lives: readonly {
    readonly args: readonly string[];
    readonly start: readonly string[];
    readonly resume: readonly string[] | null;
    readonly restart: readonly string[];
  }[];
  /** A disk with files of `session` in PLACE, of other sessions and of other directories. */
  readonly disk: Readonly<Record<string, MemoryFile>>;
  /** Names of `session`'s files on that disk. */
  readonly names: readonly string[];
  /** Sessions of PLACE on that disk that were created since 1000. */
  readonly found: readonly string[];
  /** Names that look like file names of this agent, but are not. */
  readonly hostileNames: readonly string[];
  /** Directories in golden/<adapter>/ with recorded transcripts, and where they are. */
  readonly golden: Readonly<
    Record<string, Partial<Position> & { readonly openCommands?: readonly string[] }>
  >;
  readonly hooks: readonly (readonly [event: string, input: Record<string, unknown>, readonly HookEvent[]])[];
  /** Lines that it prints, and what they mean. */
  readonly prints: readonly (readonly [PatternClass | "unknown-session" | null, string])[];
  /** A config file of a user's, for `install`. */
  readonly settings: string | null;
}
