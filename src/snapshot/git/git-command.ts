// Runs git in its own environment: no GIT_* variables of the caller, no hooks, file-system monitor, prompt or pager, no
// lock on the user's index, no repository above the worktree, and a timeout for filters that hang.
import { spawn } from "node:child_process";
import { dirname } from "node:path";

export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  /** The same as bytes: file names need not be UTF-8. */
  readonly bytes: Buffer;
  readonly stderr: string;
}

export interface GitOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly indexFile?: string;
  readonly input?: string | Buffer;
  /** Author and committer date, in a format that git accepts. */
  readonly date?: string;
  readonly timeoutMs?: number;
}

const QUIET = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.safecrlf=false",
  "core.splitIndex=false",
  "core.logAllRefUpdates=false",
  "gc.auto=0",
].flatMap((setting) => ["-c", setting]);
const IDENTITY = { NAME: "Lazarus", EMAIL: "lazarus@localhost" };
/** The first `add` of a huge worktree takes minutes. */
const TIMEOUT_MS = 10 * 60 * 1000;

/** Never throws: a missing or failing git is a result with an exit code. */
export function git(worktree: string, args: readonly string[], options: GitOptions): Promise<GitResult> {
  const { PATH, HOME, XDG_CONFIG_HOME, TMPDIR } = options.environment;
  const env: Record<string, string> = {
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_LITERAL_PATHSPECS: "0",
    // If `.git` is not a repository, git must not use one in a parent directory.
    GIT_CEILING_DIRECTORIES: dirname(worktree),
    GIT_AUTHOR_NAME: IDENTITY.NAME,
    GIT_AUTHOR_EMAIL: IDENTITY.EMAIL,
    GIT_COMMITTER_NAME: IDENTITY.NAME,
    GIT_COMMITTER_EMAIL: IDENTITY.EMAIL,
  };
  for (const [key, value] of Object.entries({ PATH, HOME, XDG_CONFIG_HOME, TMPDIR }))
    if (value !== undefined) env[key] = value;
  if (options.date !== undefined) env.GIT_AUTHOR_DATE = env.GIT_COMMITTER_DATE = options.date;
  if (options.indexFile !== undefined) env.GIT_INDEX_FILE = options.indexFile;
  return new Promise((resolve) => {
    // Its own process group, so that a hanging filter is killed together with git.
    const child = spawn("git", [...QUIET, "-C", worktree, ...args], { env, detached: true });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    let timer: NodeJS.Timeout | undefined;
    const end = (code: number, why?: string) => {
      clearTimeout(timer);
      const bytes = Buffer.concat(out);
      const stderr = why ?? Buffer.concat(err).toString("utf8").trim();
      resolve({ code, stdout: bytes.toString("utf8"), bytes, stderr });
    };
    // Without descriptors for the pipes there is no child, only this event.
    child.on("error", (error) => end(-1, isMissing(error) ? "not found in PATH" : error.message));
    if (child.stdout === undefined) return;
    const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    timer = setTimeout(() => {
      end(-1, `timed out after ${timeoutMs / 1000} s`);
      killGroup(child.pid);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    }, timeoutMs);
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    child.on("close", (code) => end(code ?? -1));
    // git may exit without reading its input.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}

function isMissing(error: Error): boolean {
  return "code" in error && error.code === "ENOENT";
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}
