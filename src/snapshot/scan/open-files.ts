// Which files processes have open for writing, according to the kernel (/proc, Linux only). Elsewhere, and for processes
// of other users, nothing is known.
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { quietly } from "../../platform/errors.ts";

export interface OpenFile {
  readonly pid: number;
  readonly program: string;
  /** Its path when it was opened, as the kernel tells it. */
  readonly path: string;
}

/** "device:inode", the identity of a file under any of its names. */
export function fileIdentity({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

/** Regular files of these devices that a process has open for writing, by identity. */
export function findFilesOpenForWriting(devices: ReadonlySet<number | undefined>): Map<string, OpenFile> {
  const found = new Map<string, OpenFile>();
  for (const pid of list("/proc").map(Number).filter(Number.isSafeInteger)) {
    for (const fd of list(`/proc/${pid}/fd`)) {
      const descriptor = `/proc/${pid}/fd/${fd}`;
      // Not a pipe or socket.
      const path = quietly(() => readlinkSync(descriptor));
      if (!path?.startsWith("/")) continue;
      const stat = quietly(() => statSync(descriptor));
      if (stat === undefined || !devices.has(stat.dev) || !stat.isFile() || !isWritable(pid, fd)) continue;
      const program = quietly(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim()) ?? "?";
      found.set(fileIdentity(stat), { pid, program, path });
    }
  }
  return found;
}

/** The flags are octal, and the last two bits are the access mode: 0 is read-only. */
function isWritable(pid: number, fd: string): boolean {
  const text = quietly(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1")) ?? "";
  const flags = /^flags:\s*([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0;
}

function list(directory: string): string[] {
  return quietly(() => readdirSync(directory)) ?? [];
}
