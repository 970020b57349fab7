// A file whose change the watcher must report before a set is trusted, as in git's fsmonitor and in Watchman. One cookie
// anywhere is enough for all trees: the kernel appends the events of all watches of one inotify instance to one queue, in the order
// in which they happen and before the call that causes them returns. So when the cookie's event has been read, every earlier event
// has been read or was lost; and a full queue also loses the cookie's event, and reports that. It is a rename, which needs no disk space,
// and each one has a new name, so that an older event is not mistaken for it. The directory is in run_dir: outside every tree.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { IN_MOVED_TO, IN_ONLYDIR, type InotifyEvent } from "../../platform/libc/inotify.ts";

export interface Cookie {
  /** Makes an event; false when that is not possible. */
  send(): boolean;
  /** Whether the event of the last `send` has been received. */
  readonly isReceived: boolean;
  /** Returns whether the event is a cookie's. */
  receive(event: InotifyEvent): boolean;
}

export function createCookie(directory: string, watch: (path: string, mask: number) => number): Cookie {
  let count = 0;
  let received = 0;
  let wd: number | undefined;
  const pathOf = (number: number) => join(directory, `cookie-${number}`);
  const prepare = () => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory))
      rmSync(join(directory, name), { recursive: true, force: true });
    writeFileSync(pathOf(count), "", { mode: 0o600 });
    wd = watch(directory, IN_MOVED_TO | IN_ONLYDIR);
  };
  const rename = () => {
    if (wd === undefined) prepare();
    renameSync(pathOf(count), pathOf(count + 1));
    count += 1;
  };
  return {
    send() {
      for (let attempt = 0; attempt < 2; attempt += 1) {
        try {
          rename();
          return true;
        } catch {
          // The file or its directory was removed.
          wd = undefined;
        }
      }
      return false;
    },
    get isReceived() {
      return received === count;
    },
    receive(event) {
      if (event.wd !== wd) return false;
      if (event.name.toString("latin1") === `cookie-${count}`) received = count;
      return true;
    },
  };
}
