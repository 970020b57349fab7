// How each real CLI is started without a terminal, and how it is pointed at the mock model.

export interface RealAgent {
  readonly args: (prompt: string) => readonly string[];
  readonly env: (url: string) => Readonly<Record<string, string>>;
  /** Files in its home. */
  readonly files: (url: string) => Readonly<Record<string, string>>;
  /** Its hooks work only when they are installed. */
  readonly needsInstall?: boolean;
}

const NO_FILES = () => ({});

export const AGENTS: Readonly<Record<string, RealAgent>> = {
  claude: {
    args: (prompt) => ["-p", prompt, "--allowedTools", "Bash", "Write"],
    env: (url) => ({ ANTHROPIC_API_KEY: "dummy", ANTHROPIC_BASE_URL: url, CLAUDE_CODE_MAX_RETRIES: "1" }),
    files: NO_FILES,
  },
  codex: {
    args: (prompt) => ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
    env: () => ({ OPENAI_API_KEY: "dummy" }),
    files: (url) => ({
      ".codex/config.toml": [
        'model = "mock"',
        'model_provider = "mock"',
        "[model_providers.mock]",
        'name = "mock"',
        `base_url = "${url}/v1"`,
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 1",
        "",
      ].join("\n"),
    }),
  },
  gemini: {
    args: (prompt) => ["--yolo", "--skip-trust", "-p", prompt],
    env: (url) => ({ GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: url }),
    files: () => ({
      ".gemini/settings.json": JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }),
    }),
    needsInstall: true,
  },
  qwen: {
    args: (prompt) => ["--yolo", "--auth-type", "openai", "-p", prompt],
    env: (url) => ({ OPENAI_API_KEY: "dummy", OPENAI_MODEL: "mock", OPENAI_BASE_URL: `${url}/v1` }),
    files: NO_FILES,
  },
  opencode: {
    args: (prompt) => ["run", prompt],
    env: NO_FILES,
    files: (url) => ({
      ".config/opencode/opencode.json": JSON.stringify({
        model: "anthropic/claude-sonnet-4-5",
        small_model: "anthropic/claude-sonnet-4-5",
        autoupdate: false,
        provider: { anthropic: { options: { baseURL: `${url}/v1`, apiKey: "dummy" } } },
      }),
    }),
  },
  pi: {
    args: (prompt) => ["-p", prompt],
    env: () => ({ ANTHROPIC_API_KEY: "dummy" }),
    files: (url) => ({
      ".pi/agent/models.json": JSON.stringify({ providers: { anthropic: { baseUrl: url } } }),
    }),
  },
  copilot: {
    args: (prompt) => ["-p", prompt, "--allow-all-tools"],
    env: (url) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_MODEL: "mock",
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: "dummy",
    }),
    files: NO_FILES,
  },
};
