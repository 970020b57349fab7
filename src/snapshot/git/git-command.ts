// Runs git with an environment of its own: nothing the caller has set (GIT_DIR, GIT_INDEX_FILE …) reaches it, no hook,
// no file-system monitor, no prompt, no pager, no lock on the user's index.
import { spawn } from "node:child_process";

export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface GitOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly indexFile?: string;
  readonly input?: string | Buffer;
  /** Author and committer date, as git takes it. */
  readonly date?: string;
}

const QUIET = [
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "core.safecrlf=false",
  "-c",
  "gc.auto=0",
  "-c",
  "core.logAllRefUpdates=false",
];
const IDENTITY = { NAME: "Lazarus", EMAIL: "lazarus@localhost" };

/** Never throws: a git that is absent, old or unhappy is a result with a code. */
export function git(worktree: string, args: readonly string[], options: GitOptions): Promise<GitResult> {
  const { PATH, HOME, XDG_CONFIG_HOME, TMPDIR } = options.environment;
  const env: Record<string, string> = {
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_LITERAL_PATHSPECS: "0",
    GIT_AUTHOR_NAME: IDENTITY.NAME,
    GIT_AUTHOR_EMAIL: IDENTITY.EMAIL,
    GIT_COMMITTER_NAME: IDENTITY.NAME,
    GIT_COMMITTER_EMAIL: IDENTITY.EMAIL,
  };
  for (const [key, value] of Object.entries({ PATH, HOME, XDG_CONFIG_HOME, TMPDIR }))
    if (value !== undefined) env[key] = value;
  if (options.date !== undefined) env["GIT_AUTHOR_DATE"] = env["GIT_COMMITTER_DATE"] = options.date;
  if (options.indexFile !== undefined) env["GIT_INDEX_FILE"] = options.indexFile;
  return new Promise((resolve) => {
    const child = spawn("git", [...QUIET, "-C", worktree, ...args], { env, stdio: ["pipe", "pipe", "pipe"] });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    child.on("error", (error) => resolve({ code: -1, stdout: "", stderr: error.message }));
    child.on("close", (code) =>
      resolve({
        code: code ?? -1,
        stdout: Buffer.concat(out).toString("utf8"),
        stderr: Buffer.concat(err).toString("utf8").trim(),
      }),
    );
    // A git that ends without reading its input is no reason to die.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}
