// The terminal host, started by the keeper's helper: opens the pty of one life, prints its name, copies its output to the log
// (descriptor 4) and serves viewers on a unix socket until SIGTERM, which says that the agent has exited. Everything is
// loaded at the start: an upgrade may remove the files while it runs.
import { rmSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { systemMachine } from "../../platform/machine.ts";
import { TerminalHost } from "./host.ts";
import { writeInterrupt } from "./interrupt.ts";
import { openPty } from "./pty.ts";
import { type TerminalSize, writeTerminalSize } from "./size.ts";

const LOG_FD = 4;
/** Dragging the corner of a window changes the size many times. */
const SIZE_DELAY_MS = 500;

const [directory = "", epochText = "", columnsText = "", rowsText = ""] = process.argv.slice(2);
// The path of a socket is limited to about a hundred bytes.
process.chdir(directory);
const machine = systemMachine;
const { clock } = machine;
const epoch = Number(epochText);
let size: TerminalSize = { columns: Number(columnsText), rows: Number(rowsText) };
let isSizeSaved = true;
let host: TerminalHost | undefined;

const pty = openPty(clock, size, {
  data: (chunk) => host?.output(chunk),
  drain: () => host?.drained(),
  end: () => void finish(),
});
host = new TerminalHost(pty, {
  clock,
  size,
  log,
  interrupted: (signal) =>
    ignoringErrors(() => writeInterrupt(machine, "interrupt.json", { epoch, signal, atMs: clock.nowMs() })),
  resized(changed) {
    size = changed;
    if (isSizeSaved) void clock.sleep(SIZE_DELAY_MS).then(saveSize);
    isSizeSaved = false;
  },
});
rmSync("terminal.sock", { force: true });
const server = createServer((socket) => host!.connect(socket));
// Bound within this call, so the socket never has a wider mode.
process.umask(0o177);
server.listen("terminal.sock", () => writeSync(1, `${pty.name}\n`));
// From the keeper: the agent has exited.
process.once("SIGTERM", () => void pty.finish());
isSizeSaved = false;
saveSize();

/** On a full disk, output is missing from the log; the agent is not affected. */
function log(chunk: Buffer): void {
  ignoringErrors(() => {
    for (let at = 0; at < chunk.length; ) at += writeSync(LOG_FD, chunk, at);
  });
}

function saveSize(): void {
  if (isSizeSaved) return;
  isSizeSaved = true;
  ignoringErrors(() => writeTerminalSize(machine, "terminal.json", size));
}

async function finish(): Promise<void> {
  saveSize();
  server.close();
  await host?.close();
  process.exit(0);
}

function ignoringErrors(action: () => void): void {
  try {
    action();
  } catch {}
}
