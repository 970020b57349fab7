// What is different about each fake agent, by its name.
import type { Profile } from "./profile.ts";
import { profile as claude } from "./profiles/claude.ts";
import { profile as cline } from "./profiles/cline.ts";
import { profile as codex } from "./profiles/codex.ts";
import { profile as copilot } from "./profiles/copilot.ts";
import { profile as gemini } from "./profiles/gemini.ts";
import { profile as openclaw } from "./profiles/openclaw.ts";
import { profile as opencode } from "./profiles/opencode.ts";
import { profile as pi } from "./profiles/pi.ts";
import { profile as qwen } from "./profiles/qwen.ts";

const ALL: readonly Profile[] = [claude, cline, codex, copilot, gemini, openclaw, opencode, pi, qwen];

export const PROFILES: Readonly<Record<string, Profile>> = Object.fromEntries(
  ALL.map((profile) => [profile.name, profile]),
);
