// All adapters: the built-in ones and those that the config declares. A declared one comes first, so that a user can
// correct what a new version of an agent broke.
import type { Adapter, FailurePatterns } from "./adapter.ts";
import { claude } from "./adapters/claude.ts";
import { cline } from "./adapters/cline.ts";
import { codex } from "./adapters/codex.ts";
import { copilot } from "./adapters/copilot.ts";
import { gemini } from "./adapters/gemini.ts";
import { openclaw } from "./adapters/openclaw.ts";
import { opencode } from "./adapters/opencode.ts";
import { pi } from "./adapters/pi.ts";
import { qwen } from "./adapters/qwen.ts";

export const BUILT_IN: readonly Adapter[] = [
  claude,
  codex,
  gemini,
  opencode,
  pi,
  qwen,
  copilot,
  cline,
  openclaw,
];

export function allAdapters(declared: readonly Adapter[] = []): readonly Adapter[] {
  return [...declared, ...BUILT_IN];
}

export function findAdapter(name: string, declared: readonly Adapter[] = []): Adapter | undefined {
  return allAdapters(declared).find((adapter) => adapter.name === name);
}

/** What the program of this name prints when it fails; empty for an unknown one. */
export function failurePatterns(program: string): FailurePatterns {
  return BUILT_IN.find(({ programs }) => programs.includes(program))?.patterns ?? {};
}
