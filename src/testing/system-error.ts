// Errors as node:fs throws them, with the same message, code, errno and syscall.
import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";

/** An error as thrown by node:fs. */
export interface SystemError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;
  readonly path?: string;
  readonly dest?: string;
}

/** The system call and paths of an error. */
export interface SystemErrorPlace {
  readonly syscall: string;
  /** Absent for calls on an open file, as in Node. */
  readonly path?: string | undefined;
  readonly dest?: string | undefined;
}

/** Creates an error as node:fs would throw it. */
export function createSystemError(code: string, { syscall, path, dest }: SystemErrorPlace): SystemError {
  const { errno, name, text } = describe(code);
  const where = path === undefined ? "" : ` '${path}'${dest === undefined ? "" : ` -> '${dest}'`}`;
  return Object.assign(new Error(`${name}: ${text}, ${syscall}${where}`), {
    errno,
    code: name,
    syscall,
    ...(path === undefined ? {} : { path }),
    ...(dest === undefined ? {} : { dest }),
  });
}

function describe(code: string): { errno: number; name: string; text: string } {
  for (const [errno, [name, text]] of getSystemErrorMap()) if (name === code) return { errno, name, text };
  // Errors that libuv does not know, such as EDQUOT, have this name in Node.
  const number: number | undefined = (constants.errno as Record<string, number>)[code];
  if (number === undefined) throw new RangeError(`${code} is not a system error of this platform`);
  const name = `Unknown system error -${number}`;
  return { errno: -number, name, text: name };
}
