// The page of examples/chat in a real browser: the server is killed and restarted while it answers, the page reloaded, the
// mail approved, the server killed again. The text is the same as without a kill, and one mail is sent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ChatServer, EVERYTHING, outboxOf } from "../run/chat/chat-server.ts";
import { type Browser, launchBrowser, type Page } from "./launch.ts";

const FIRST_ANSWER = 20;
let root: string;
let browser: Browser | undefined;
let problem = "";

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "lazarus-browser-"));
  try {
    browser = await launchBrowser();
  } catch (error) {
    problem = `no browser: ${String(error).split("\n")[0]}`;
    process.stderr.write(`not run: ${problem}\n`);
  }
});
afterAll(async () => {
  await browser?.close();
  rmSync(root, { recursive: true, force: true });
});

const shows = (page: Page, text: string) =>
  page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`);
const hasStatus = (page: Page, status: string) =>
  page.waitForFunction(`document.querySelector("#status").textContent === ${JSON.stringify(status)}`);

/** Talks until the answer is complete, with or without kills in the middle of both texts and at the request. */
async function converse(kill: boolean): Promise<{ text: string | null; mails: number }> {
  const directory = mkdtempSync(join(root, "chat-"));
  let server = await ChatServer.start(directory, kill ? 7 : EVERYTHING);
  const port = Number(new URL(server.url).port);
  const restart = async (fragments: number) => {
    await server.kill();
    server = await ChatServer.start(directory, fragments, { port });
  };
  try {
    const page = await browser!.newPage();
    await page.goto(server.url);
    await page.click("form button");
    if (kill) {
      await shows(page, "Certainly. I have written a short n");
      await restart(FIRST_ANSWER);
      await page.reload();
    }
    await hasStatus(page, "waiting for you");
    if (kill) await restart(5);
    await page.click(".tool button");
    if (kill) {
      await shows(page, "Done. Bob has been told,");
      await restart(EVERYTHING);
    }
    await hasStatus(page, "ready");
    return { text: await page.textContent("main"), mails: outboxOf(directory).length };
  } finally {
    await server.kill();
  }
}

test("no word is lost or doubled, and the mail is sent once", async (context) => {
  if (browser === undefined) return context.skip(problem);
  const undisturbed = await converse(false);
  expect(undisturbed.text).toContain("nothing else was sent to anybody.");
  expect(undisturbed.mails).toBe(1);
  expect(await converse(true)).toEqual(undisturbed);
});
