// What a command receives: the machine, the configuration and its two output streams. Commands never touch the process
// themselves, so tests can run them in memory.

import { type EffectiveConfig, loadConfig, type Surroundings } from "../cell/config.ts";
import { type MissionId, parseMissionId } from "../cell/mission-id.ts";
import { messageOf } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import type { NewEvent } from "../registry/registry.ts";
import { createPainter, escapeControls, formatJson, type Painter } from "./render/paint.ts";
import type { Terminal } from "./terminal.ts";

/** Values of the options that every command takes. */
export interface GlobalValues {
  readonly json: boolean;
  readonly config: string | undefined;
  readonly quiet: boolean;
  readonly help: boolean;
}

export interface CliContext {
  readonly machine: Machine;
  readonly surroundings: Surroundings;
  readonly terminal: Terminal;
  readonly globals: GlobalValues;
  /** The process that called this command. */
  readonly callerPid: number;
  /** Aborts when the user interrupts. The first access installs the signal handlers. */
  readonly signal: AbortSignal;
  /** The effective configuration, read on first use. */
  readonly config: EffectiveConfig;
  /** Colors for stdout. */
  readonly paint: Painter;
  mission(text: string): MissionId;
  /** Prints the result on stdout: one JSON document with --json, otherwise the text. */
  emit(schema: string, document: object, human: () => string): void;
  /** A message on stderr; silent with --quiet and --json. */
  say(line: string): void;
  /** A warning on stderr, even with --quiet. */
  warn(line: string): void;
  /** Appends to the event log. If the registry cannot be written, the command warns and continues. */
  record(event: NewEvent): Promise<void>;
}

export interface ContextParts {
  readonly machine: Machine;
  readonly surroundings: Surroundings;
  readonly terminal: Terminal;
  readonly callerPid: number;
  readonly signal: () => AbortSignal;
}

export function createContext(parts: ContextParts, globals: GlobalValues): CliContext {
  const { machine, surroundings, terminal } = parts;
  let config: EffectiveConfig | undefined;
  let paint: Painter | undefined;
  const context: CliContext = {
    machine,
    surroundings,
    terminal,
    globals,
    callerPid: parts.callerPid,
    get signal() {
      return parts.signal();
    },
    get config() {
      if (config === undefined) {
        config = loadConfig(surroundings, globals.config);
        if (config.ignored !== undefined) context.warn(config.ignored);
      }
      return config;
    },
    get paint() {
      paint ??= createPainter(surroundings.env, () => terminal.outIsTerminal);
      return paint;
    },
    mission: parseMissionId,
    emit(schema, document, human) {
      if (globals.json) terminal.out(`${formatJson({ schema: `lazarus.${schema}`, ...document })}\n`);
      else terminal.out(human());
    },
    say(line) {
      if (!globals.quiet && !globals.json) terminal.err(`${line}\n`);
    },
    warn(line) {
      const { yellow } = createPainter(surroundings.env, () => terminal.errIsTerminal);
      terminal.err(`${yellow("warning")}: ${escapeControls(line)}\n`);
    },
    async record(event) {
      try {
        const { openRegistry } = await import("../registry/registry.ts");
        using registry = openRegistry(machine, context.config.config.registry_file);
        registry.append(event);
      } catch (error) {
        context.warn(`cannot write the event log: ${messageOf(error)}`);
      }
    },
  };
  return context;
}
