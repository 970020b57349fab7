// Runs the launcher again on a newer Node, from the `node` npm package if it is installed. Signals are forwarded and the
// exit code is the child's, so that a shell or service manager sees one process.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

function findNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve("node/package.json");
    const binary = join(dirname(manifest), "bin", "node");
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}

/** The command that installs a newer Node for this copy of Lazarus: in a project, a clone, or a global install. */
function remedy(major, root) {
  if (basename(dirname(root)) !== "node_modules") return `npm ci   (in ${root})`;
  const project = dirname(dirname(root));
  // npm would remove the other global packages.
  if (!existsSync(join(project, "package.json"))) return `install Node ${major} from https://nodejs.org`;
  return `npm install node@${major}   (in ${project})`;
}

export async function reexecute(major, launcherUrl) {
  const launcher = fileURLToPath(launcherUrl);
  const node = process.env.LAZARUS_CALLER_PID ? undefined : findNode();
  if (!node) {
    process.stderr.write(
      `error: Lazarus needs Node ${major} or newer, and this is Node ${process.versions.node}\n` +
        `  try: ${remedy(major, dirname(dirname(launcher)))}\n`,
    );
    process.exitCode = 1;
    return;
  }
  const child = spawn(node, [launcher, ...process.argv.slice(2)], {
    stdio: "inherit",
    // The child needs the pid of the real caller, and must not start a third process.
    env: { ...process.env, LAZARUS_CALLER_PID: String(process.ppid) },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    // A terminal signals the whole foreground group; forwarding would deliver the signal twice.
    const fromTerminal = process.stdin.isTTY && signal !== "SIGTERM";
    process.on(signal, () => fromTerminal || child.kill(signal));
  }
  await new Promise((resolve) => {
    child.on("error", (error) => {
      process.stderr.write(
        `error: ${node} could not be started: ${error.message}\n  try: npm rebuild node\n`,
      );
      process.exitCode = 1;
      resolve();
    });
    child.on("exit", (code, signal) => {
      process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
      resolve();
    });
  });
}
