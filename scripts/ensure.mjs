// Makes a clone ready for npm scripts: installs dependencies when node_modules does not match the lock file, then
// builds dist when a source is newer. Runs on any Node from 20 up, and prints nothing when there is nothing to do.
//
//   node scripts/ensure.mjs             install and build
//   node scripts/ensure.mjs --install   install only
//   node scripts/ensure.mjs --build     build only: for callers that run from node_modules, which `npm ci` would replace,
//                                       and for npm's `dependencies` script, which builds a clone after installing it
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startProgress } from "./progress.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const at = (...parts) => join(root, ...parts);
const node = at("node_modules", "node", "bin", "node");
const rolldown = at("node_modules", "rolldown", "bin", "cli.mjs");
const tsc = at("node_modules", "typescript", "bin", "tsc");

function readPackages(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, "utf8")).packages;
  } catch {
    return {};
  }
}

const required = Object.entries(readPackages(at("package-lock.json"))).filter(
  ([path, { optional }]) => path !== "" && !optional,
);

/** npm writes node_modules/.package-lock.json last, so an interrupted install does not count as installed. */
function isInstalled() {
  const installed = readPackages(at("node_modules", ".package-lock.json"));
  return existsSync(node) && required.every(([path, { version }]) => installed[path]?.version === version);
}

async function install() {
  const startMs = Date.now();
  const total = required.length;
  // By ctime: npm gives files an old mtime, and what an earlier install left is deleted first.
  const isUnpacked = ([path]) =>
    (statSync(at(path, "package.json"), { throwIfNoEntry: false })?.ctimeMs ?? 0) > startMs;
  const progress = startProgress(() => {
    const unpacked = required.filter(isUnpacked).length;
    return unpacked < total ? `Installing packages (${unpacked} of ${total})` : "Installing Node 24";
  });
  await run(progress, "npm", ["ci", "--loglevel=error"]);
  progress.finish(`Installed packages and Node 24 into node_modules in ${progress.elapsed()}`);
}

const modified = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function newestSource() {
  const settings = ["rolldown.config.ts", "tsconfig.json", "tsconfig.types.json", "package.json"].map(
    (name) => at(name),
  );
  const sources = readdirSync(at("src"), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name));
  return Math.max(...[...settings, ...sources].map(modified));
}

/** Types are written last, so an interrupted build does not count as built. */
function isBuilt() {
  const oldest = Math.min(
    modified(at("dist", "cli", "main.js")),
    modified(at("dist", "types", "index.d.ts")),
  );
  return oldest >= newestSource();
}

async function build() {
  const progress = startProgress(() => "Building dist");
  await run(progress, node, [rolldown, "-c", "rolldown.config.ts", "--log-level", "warn"]);
  // --noCheck: type errors are for `npm run check` to report; they must not keep tests from running.
  await run(progress, node, [tsc, "-p", "tsconfig.types.json", "--noCheck"]);
  progress.finish(`Built dist in ${progress.elapsed()}`);
}

/** Discards stdout, passes stderr on, and exits with the command's exit code when it fails. */
async function run(progress, command, args) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
    // Read by the `dependencies` script, which `npm ci` runs: no build there, since it follows here.
    env: { ...process.env, LAZARUS_ENSURE: "running" },
  });
  child.stderr.setEncoding("utf8").on("data", (text) => progress.print(text));
  const [code, signal] = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (...end) => resolve(end));
  });
  if (code === 0) return;
  progress.finish(`${[command, ...args].join(" ")} failed with ${signal ?? `exit code ${code}`}`);
  process.exit(code ?? 1);
}

const [mode] = process.argv.slice(2);
if (process.env.LAZARUS_ENSURE === undefined) {
  if (!isInstalled()) {
    if (mode !== "--build") await install();
    else process.stderr.write("node_modules does not match package-lock.json; to install: npm ci\n");
  }
  // After `npm ci --omit=dev` there is nothing to build with.
  const canBuild = existsSync(rolldown) && existsSync(tsc);
  if (mode !== "--install" && canBuild && !isBuilt()) await build();
}
