// How each agent is started without a terminal, for tests with fake and with real ones.

export interface Headless {
  readonly args: (prompt: string) => readonly string[];
  /** Variables without which it refuses to start. */
  readonly key: Readonly<Record<string, string>>;
}

export const HEADLESS: Readonly<Record<string, Headless>> = {
  claude: {
    args: (prompt) => ["-p", prompt, "--allowedTools", "Bash", "Write"],
    key: { ANTHROPIC_API_KEY: "dummy" },
  },
  codex: {
    args: (prompt) => ["exec", "--skip-git-repo-check", prompt],
    key: { OPENAI_API_KEY: "dummy" },
  },
  cline: { args: (prompt) => [prompt], key: { ANTHROPIC_API_KEY: "dummy" } },
  copilot: {
    args: (prompt) => ["-p", prompt, "--allow-all-tools"],
    key: { COPILOT_PROVIDER_API_KEY: "dummy" },
  },
  openclaw: { args: (prompt) => ["agent", "--local", "-m", prompt], key: { OPENAI_API_KEY: "dummy" } },
  opencode: { args: (prompt) => ["run", prompt], key: { ANTHROPIC_API_KEY: "dummy" } },
  pi: { args: (prompt) => ["-p", prompt], key: { ANTHROPIC_API_KEY: "dummy" } },
  gemini: { args: (prompt) => ["--yolo", "-p", prompt], key: { GEMINI_API_KEY: "dummy" } },
  qwen: { args: (prompt) => ["--yolo", "-p", prompt], key: { OPENAI_API_KEY: "dummy" } },
};
