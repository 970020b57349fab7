// Commits in a git repository without pause until it is killed, and sometimes packs refs and objects. Argument: the worktree.
import { execFileSync } from "node:child_process";
import { writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const [worktree = ""] = process.argv.slice(2);
const who = ["-c", "user.name=a", "-c", "user.email=a@a", "-c", "gc.auto=0", "-c", "maintenance.auto=false"];
const git = (...args: string[]) =>
  execFileSync("git", ["-C", worktree, ...who, ...args], { stdio: "ignore" });
for (let i = 0; ; i += 1) {
  writeFileSync(join(worktree, "a.txt"), `content ${i}\n`);
  git("commit", "-qam", `commit ${i}`);
  if (i % 10 === 9) git("gc", "-q");
  if (i === 0) writeSync(1, "ready\n");
}
