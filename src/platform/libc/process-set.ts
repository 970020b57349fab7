// A set of processes, of which one system call tells which have exited: their pidfds in an epoll set. The cost of that call does
// not depend on the size of the set.
import { closeSync } from "node:fs";
import { type Libc, PosixError } from "./libc.ts";

export interface ProcessSet extends Disposable {
  /**
   * Adds a process and returns its descriptor, a pidfd, which never refers to a later process with the same pid; undefined when
   * there is no such process.
   */
  add(pid: number): number | undefined;
  /** Removes a process and closes its descriptor. */
  remove(fd: number): void;
  /** The descriptors of processes that have exited. */
  ended(): readonly number[];
}

/** This number is the same on every Linux architecture; glibc has a wrapper only since 2.36. */
const SYS_PIDFD_OPEN = 434;
const EPOLL_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLLIN = 1;

/** `struct epoll_event` is packed on x86-64 only. */
function eventLayout(): { readonly bytes: number; readonly data: number } {
  return process.arch === "x64" ? { bytes: 12, data: 4 } : { bytes: 16, data: 8 };
}

export function bindProcessSet({ darwin, lazy, lastCode, fail }: Libc): () => ProcessSet {
  const pidfdOpen = lazy("long syscall(long number, int pid, uint flags)");
  const create = lazy("int epoll_create1(int flags)");
  const control = lazy("int epoll_ctl(int epoll, int operation, int fd, void *event)");
  const wait = lazy("int epoll_wait(int epoll, void *events, int count, int timeoutMs)");
  const layout = eventLayout();
  return () => {
    if (darwin) throw new PosixError("epoll_create1", "ENOSYS");
    const epoll = create(EPOLL_CLOEXEC);
    if (epoll < 0) fail("epoll_create1");
    const members = new Set<number>();
    const event = Buffer.alloc(layout.bytes);
    let events = Buffer.alloc(0);
    return {
      add(pid) {
        const fd = Number(pidfdOpen(SYS_PIDFD_OPEN, pid, 0));
        if (fd < 0) return lastCode() === "ESRCH" ? undefined : fail("pidfd_open");
        event.writeUInt32LE(EPOLLIN);
        event.writeInt32LE(fd, layout.data);
        if (control(epoll, EPOLL_CTL_ADD, fd, event) !== 0) {
          const error = new PosixError("epoll_ctl", lastCode());
          closeSync(fd);
          throw error;
        }
        members.add(fd);
        return fd;
      },
      remove(fd) {
        if (!members.delete(fd)) return;
        // A child that was just forked may have a copy, which would keep it in the set.
        control(epoll, EPOLL_CTL_DEL, fd, event);
        closeSync(fd);
      },
      ended() {
        if (members.size === 0) return [];
        if (events.length < members.size * layout.bytes) events = Buffer.alloc(members.size * layout.bytes);
        // Negative if a signal interrupts it: the caller's next call finds them.
        const count: number = wait(epoll, events, members.size, 0);
        const fdAt = (_: unknown, i: number) => events.readInt32LE(i * layout.bytes + layout.data);
        return Array.from({ length: Math.max(0, count) }, fdAt);
      },
      [Symbol.dispose]() {
        for (const fd of members) closeSync(fd);
        members.clear();
        closeSync(epoll);
      },
    };
  };
}
