// Lists trees with list_tree.py, which shares no code with Lazarus. One Python process per worker answers all requests,
// because starting Python takes 20 ms of CPU time, and the tests list more than a thousand trees.
import { execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
const PROGRAM = join(import.meta.dirname, "list_tree.py");

interface Lister {
  readonly requests: number;
  readonly answers: number;
}

let lister: Lister | undefined;

/** The tree as list_tree.py sees it, one line per path. */
export function listTree(directory: string, ...skip: string[]): string[] {
  lister ??= startLister();
  writeSync(lister.requests, `${JSON.stringify([directory, ...skip])}\n`);
  const [status, bytes] = readBytes(lister.answers, 16).toString().trim().split(" ");
  const text = readBytes(lister.answers, Number(bytes)).toString();
  if (status !== "ok") throw new Error(`list_tree.py failed: ${text}`);
  return text.trimEnd().split("\n");
}

/** Named pipes, because reading from them blocks: the pipes of `spawn` are not readable synchronously. */
function startLister(): Lister {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-lister-"));
  const pipe = (name: string) => {
    const path = join(directory, name);
    execFileSync("mkfifo", [path]);
    // Opened for both first, so that opening either end does not wait for the other.
    const both = openSync(path, constants.O_RDWR);
    const ends = { reader: openSync(path, "r"), writer: openSync(path, "w") };
    closeSync(both);
    return ends;
  };
  const [requests, answers] = [pipe("requests"), pipe("answers")];
  rmSync(directory, { recursive: true });
  const child = spawn(PYTHON, [PROGRAM], { stdio: [requests.reader, answers.writer, "inherit"] });
  child.once("error", () => {});
  child.unref();
  // The only ends are now in the child and here: each side sees when the other has ended.
  closeSync(requests.reader);
  closeSync(answers.writer);
  return { requests: requests.writer, answers: answers.reader };
}

function readBytes(fd: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  for (let filled = 0; filled < length; ) {
    const count = readSync(fd, buffer, filled, length - filled, null);
    if (count === 0) throw new Error("list_tree.py has ended");
    filled += count;
  }
  return buffer;
}
