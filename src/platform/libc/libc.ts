// The C library as functions bound by their prototypes, and its errors as exceptions with a code. `posix.ts` loads koffi
// and passes it in; what the calls mean is decided there.
import type { FilePath } from "../disk.ts";

// biome-ignore lint/suspicious/noExplicitAny: koffi describes C functions at run time.
export type CFunction = (...args: any[]) => any;

export interface Libc {
  readonly darwin: boolean;
  /** Binds a C function by its prototype. */
  func(prototype: string): CFunction;
  /** Like `func`, but binds the function on its first call. */
  lazy(prototype: string): CFunction;
  /** Where a buffer is in memory, for structures that contain pointers. It stays there. */
  addressOf(buffer: Buffer): bigint;
  lastCode(): string;
  fail(call: string, path?: FilePath): never;
}

export class PosixError extends Error {
  readonly code: string;
  constructor(call: string, code: string, path?: FilePath) {
    super(`${code}: ${call}${path === undefined ? "" : ` '${path.toString()}'`}`);
    this.code = code;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: koffi has no types for what it loads.
export function openLibc(koffi: any, darwin: boolean): Libc {
  const library = koffi.load(darwin ? "libSystem.B.dylib" : null);
  const names = new Map(Object.entries<number>(koffi.os.errno).map(([name, number]) => [number, name]));
  const lastCode = () => names.get(koffi.errno()) ?? `errno ${koffi.errno()}`;
  const func = (prototype: string): CFunction => library.func(prototype);
  return {
    darwin,
    func,
    lazy(prototype) {
      let bound: CFunction | undefined;
      return (...args) => {
        bound ??= func(prototype);
        return bound(...args);
      };
    },
    addressOf: (buffer) => koffi.address(buffer),
    lastCode,
    fail(call, path) {
      throw new PosixError(call, lastCode(), path);
    },
  };
}

/** The path with a terminating zero byte. */
export function toCPath(path: FilePath): Buffer {
  return Buffer.concat([typeof path === "string" ? Buffer.from(path) : path, Buffer.of(0)]);
}
