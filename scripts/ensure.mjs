// Brings a fresh clone to the point where npm scripts can run: installs dependencies when they are missing or older
// than the lock file, then builds dist when a source is newer. Plain JavaScript for any Node from 20 up; says in one
// line what it does, and nothing when there is nothing to do.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const at = (...parts) => join(root, ...parts);
const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

/** Their talk about success is not ours; their errors come on stderr. */
function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  if (error) throw error;
  if (status !== 0) {
    process.stderr.write(`lazarus: ${command} ${args.join(" ")} failed with exit code ${status}\n`);
    process.exit(status ?? 1);
  }
}

const node = at("node_modules", "node", "bin", "node");
const installed = at("node_modules", ".package-lock.json");
if (!existsSync(node) || modified(installed) < modified(at("package-lock.json"))) {
  process.stderr.write("lazarus: installing dependencies and Node 24 into node_modules (npm install)\n");
  // Not `npm ci`: it refuses a lock file made where the packages of other platforms could not be seen. This installs
  // the same locked versions, and --no-save leaves the lock file as it is.
  run("npm", ["install", "--no-save", "--loglevel=error", "--no-audit", "--no-fund"]);
}

function newest(directory) {
  let latest = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) latest = Math.max(latest, modified(join(entry.parentPath, entry.name)));
  }
  return latest;
}

const sources = Math.max(newest(at("src")), modified(at("rolldown.config.ts")), modified(at("package.json")));
if (modified(at("dist", "cli", "main.js")) < sources) {
  process.stderr.write("lazarus: building dist\n");
  run(node, [
    at("node_modules", "rolldown", "bin", "cli.mjs"),
    "-c",
    "rolldown.config.ts",
    "--log-level",
    "warn",
  ]);
}
