// How each real CLI is started without a terminal, and how it is pointed at the mock model.

export interface RealAgent {
  readonly args: (prompt: string) => readonly string[];
  readonly env: (url: string) => Readonly<Record<string, string>>;
  /** The variables of one without a key, where that is not `env` without its keys. */
  readonly keyless?: Readonly<Record<string, string>>;
  /** Files in its home; without a key if `key` is undefined. */
  readonly files: (url: string, key: string | undefined, work: string) => Readonly<Record<string, string>>;
  /** Resumes a session; default one that does not exist. */
  readonly resume: (prompt: string, session?: string) => readonly string[];
  /** What it does with `retry-after` of a refusal: waits that long, prints it (`reset`), or does not mention it. */
  readonly waits: "itself" | "reset" | "silent";
  /** It cannot be resumed without a terminal, so it starts over and is told what was done. */
  readonly restarts?: boolean;
  /** Its conversation is in a database that other sessions share: it is neither restored nor damaged here. */
  readonly isShared?: boolean;
  /** It repeats a call that was refused with 429 for minutes. */
  readonly repeats?: boolean;
  /** It also calls a model without a key. */
  readonly needsNoKey?: boolean;
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
    // It would wait for what it cannot download.
    env: () => ({
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    }),
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
    // A custom provider needs no key; GitHub's needs a login.
    keyless: {},
    files: NO_FILES,
  },
  cline: {
    args: (prompt) => [prompt],
    resume: (prompt, id = "1795000000000_nobody") => ["--id", id, prompt],
    waits: "itself",
    restarts: true,
    needsNoKey: true,
    env: NO_FILES,
    files: (url, apiKey) => ({
      ".cline/data/settings/providers.json": JSON.stringify({
        version: 1,
        lastUsedProvider: "openai-compatible",
        modes: {},
        providers: {
          "openai-compatible": {
            settings: { provider: "openai-compatible", apiKey, model: "mock", baseUrl: `${url}/v1` },
            updatedAt: "2026-11-18T00:00:00.000Z",
            tokenSource: "manual",
          },
        },
      }),
    }),
    needsInstall: true,
  },
  openclaw: {
    args: (prompt) => ["agent", "--local", "--session-id", "main", "-m", prompt],
    resume: (prompt, id = "nobody") => ["agent", "--local", "--session-id", id, "-m", prompt],
    waits: "itself",
    isShared: true,
    repeats: true,
    env: NO_FILES,
    // A provider of the user's own needs no key; Anthropic's does.
    files: (url, apiKey, work) => ({
      ".openclaw/openclaw.json": JSON.stringify({
        models: {
          mode: "merge",
          providers:
            apiKey === undefined
              ? { anthropic: { baseUrl: url, api: "anthropic-messages", models: [] } }
              : { mock: openClawProvider(url, apiKey) },
        },
        agents: {
          defaults: {
            model: { primary: apiKey === undefined ? "anthropic/claude-sonnet-4-5" : "mock/mock" },
            workspace: work,
          },
        },
      }),
    }),
  },
};

function openClawProvider(url: string, apiKey: string) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const limits = { contextWindow: 128_000, maxTokens: 8000 };
  const model = { id: "mock", name: "mock", reasoning: false, input: ["text"], cost, ...limits };
  return { baseUrl: `${url}/v1`, apiKey, api: "openai-completions", models: [model] };
}
