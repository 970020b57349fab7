// The events of Linux inotify: their bits, and decoding of the buffer that a read returns (struct inotify_event in
// inotify(7)). Pure. Names stay bytes; numbers are little-endian, as on every machine that Node runs on with koffi.

export const IN_MODIFY = 0x2;
export const IN_ATTRIB = 0x4;
export const IN_CLOSE_WRITE = 0x8;
export const IN_MOVED_FROM = 0x40;
export const IN_MOVED_TO = 0x80;
export const IN_CREATE = 0x100;
export const IN_DELETE = 0x200;
export const IN_DELETE_SELF = 0x400;
export const IN_MOVE_SELF = 0x800;

/** Only reported, never asked for. */
export const IN_UNMOUNT = 0x2000;
export const IN_Q_OVERFLOW = 0x4000;
export const IN_IGNORED = 0x8000;
export const IN_ISDIR = 0x40000000;

/** Only asked for, never reported. */
export const IN_ONLYDIR = 0x1000000;
export const IN_DONT_FOLLOW = 0x2000000;
export const IN_EXCL_UNLINK = 0x4000000;

export interface InotifyEvent {
  /** The watch; -1 for an overflow. */
  readonly wd: number;
  readonly mask: number;
  /** Connects the two events of a rename; 0 otherwise. */
  readonly cookie: number;
  /** A name in the watched directory; empty when the event is about the directory itself. A view of the buffer. */
  readonly name: Buffer;
}

const HEADER_BYTES = 16;

/** The events in the first `length` bytes. The kernel never returns a part of an event. */
export function* decodeEvents(buffer: Buffer, length: number): Generator<InotifyEvent> {
  let at = 0;
  while (at + HEADER_BYTES <= length) {
    const start = at + HEADER_BYTES;
    const end = start + buffer.readUInt32LE(at + 12);
    // The name is padded with zero bytes to the alignment of the next event.
    const padding = buffer.subarray(start, end).indexOf(0);
    yield {
      wd: buffer.readInt32LE(at),
      mask: buffer.readUInt32LE(at + 4),
      cookie: buffer.readUInt32LE(at + 8),
      name: buffer.subarray(start, padding < 0 ? end : start + padding),
    };
    at = end;
  }
}
