// The files that a process has mapped into memory, shared and writable: selected by the kernel (PROCMAP_QUERY, Linux 6.11). The
// text of /proc/<pid>/maps has all mappings of the process, hundreds of them.
import type { Libc } from "./libc.ts";

export interface Mapping {
  readonly inode: number;
  readonly path: string;
}

const PROCMAP_QUERY = 0xc0686611;
/** The first mapping at or after an address (0x10) that is writable (0x02), shared (0x08) and of a file (0x20). */
const FLAGS = 0x3an;
/** `struct procmap_query` of linux/fs.h. */
const BYTES = 104;
const AT = { size: 0, flags: 8, address: 16, end: 32, inode: 64, pathBytes: 80, path: 88 } as const;
const MAX_PATH = 4096;

/** The bound function takes a process's open `maps`; undefined where the kernel cannot select: read the text instead. */
export function bindMappings({ darwin, lazy, lastCode, addressOf }: Libc) {
  const ioctl = lazy("int ioctl(int fd, ulong request, void *argument)");
  const query = Buffer.alloc(BYTES);
  const path = Buffer.alloc(MAX_PATH);
  let canSelect = !darwin;
  return (maps: number): Mapping[] | undefined => {
    const found: Mapping[] = [];
    const pathAddress = addressOf(path);
    for (let address = 0n; canSelect; address = query.readBigUInt64LE(AT.end)) {
      query.fill(0);
      query.writeBigUInt64LE(BigInt(BYTES), AT.size);
      query.writeBigUInt64LE(FLAGS, AT.flags);
      query.writeBigUInt64LE(address, AT.address);
      query.writeUInt32LE(MAX_PATH, AT.pathBytes);
      query.writeBigUInt64LE(pathAddress, AT.path);
      if (ioctl(maps, PROCMAP_QUERY, query) !== 0) {
        const code = lastCode();
        // No more of them, or the process has ended.
        if (code === "ENOENT" || code === "ESRCH") return found;
        canSelect = code !== "ENOTTY";
        return undefined;
      }
      const end = Math.max(0, query.readUInt32LE(AT.pathBytes) - 1);
      found.push({
        inode: Number(query.readBigUInt64LE(AT.inode)),
        path: path.toString("utf8", 0, end),
      });
    }
    return undefined;
  };
}
