// How each real CLI is started without a terminal, and how it is pointed at the mock model.

export interface RealAgent {
  readonly args: (prompt: string) => readonly string[];
  readonly env: (url: string) => Readonly<Record<string, string>>;
  /** Files in its home; without a key if `key` is undefined. */
  readonly files: (url: string, key: string | undefined) => Readonly<Record<string, string>>;
  /** Resumes a session; default one that does not exist. */
  readonly resume: (prompt: string, session?: string) => readonly string[];
  /** What it does with `retry-after` of a refusal: waits as long itself, says it (`reset`), or keeps it to itself. */
  readonly waits: "itself" | "reset" | "silent";
  /** It makes the conversation shorter instead of giving up. */
  readonly compacts?: boolean;
  /** Its hooks work only when they are installed. */
  readonly needsInstall?: boolean;
}

const NO_FILES = () => ({});
const NOBODY = "0b0c1d2e-9999-4222-8333-444455556666";

export const AGENTS: Readonly<Record<string, RealAgent>> = {
  claude: {
    args: (prompt) => ["-p", prompt, "--allowedTools", "Bash", "Write"],
    resume: (prompt, id = NOBODY) => ["-p", prompt, "--resume", id, "--allowedTools", "Bash", "Write"],
    waits: "silent",
    env: (url) => ({ ANTHROPIC_API_KEY: "dummy", ANTHROPIC_BASE_URL: url, CLAUDE_CODE_MAX_RETRIES: "1" }),
    files: NO_FILES,
  },
  codex: {
    args: (prompt) => ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
    resume: (prompt, id = NOBODY) => [
      ...["exec", "resume", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", id],
      prompt,
    ],
    waits: "itself",
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
    resume: (prompt, id = NOBODY) => ["--yolo", "--skip-trust", "--resume", id, "-p", prompt],
    waits: "reset",
    env: (url) => ({ GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: url }),
    files: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { maxAttempts: 2 },
      }),
    }),
    needsInstall: true,
  },
  qwen: {
    args: (prompt) => ["--yolo", "--auth-type", "openai", "-p", prompt],
    resume: (prompt, id = NOBODY) => ["--yolo", "--auth-type", "openai", "--resume", id, "-p", prompt],
    waits: "itself",
    env: (url) => ({ OPENAI_API_KEY: "dummy", OPENAI_MODEL: "mock", OPENAI_BASE_URL: `${url}/v1` }),
    files: () => ({
      ".qwen/settings.json": JSON.stringify({ model: { generationConfig: { maxRetries: 1 } } }),
    }),
  },
  opencode: {
    compacts: true,
    args: (prompt) => ["run", prompt],
    resume: (prompt, id = "ses_0000000000000000000000NOBODY") => ["run", "--session", id, prompt],
    waits: "itself",
    env: NO_FILES,
    files: (url, apiKey) => ({
      ".config/opencode/opencode.json": JSON.stringify({
        model: "anthropic/claude-sonnet-4-5",
        small_model: "anthropic/claude-sonnet-4-5",
        autoupdate: false,
        provider: { anthropic: { options: { baseURL: `${url}/v1`, apiKey } } },
      }),
    }),
  },
  pi: {
    args: (prompt) => ["-p", prompt],
    resume: (prompt, id = NOBODY) => ["-p", "--session", id, prompt],
    waits: "itself",
    env: () => ({ ANTHROPIC_API_KEY: "dummy" }),
    files: (url) => ({
      ".pi/agent/models.json": JSON.stringify({ providers: { anthropic: { baseUrl: url } } }),
    }),
  },
  copilot: {
    args: (prompt) => ["-p", prompt, "--allow-all-tools"],
    resume: (prompt, id = NOBODY) => [`--resume=${id}`, "-p", prompt, "--allow-all-tools"],
    waits: "reset",
    env: (url) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_MODEL: "mock",
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: "dummy",
    }),
    files: NO_FILES,
  },
};
