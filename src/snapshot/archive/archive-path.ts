// Paths of untrusted archives: which are refused, and how whiteouts and escaped names are recognized. Pure.
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";

export const WHITEOUT = ".wh.";

/** The path relative to the root; refused when it leads elsewhere. */
export function cleanPath(path: string): string {
  if (path.startsWith("/")) throw hostile(path, "is absolute");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw hostile(path, "contains ..");
  if (path === "" || path.includes("\0")) throw hostile(path, "is not a file name");
  return names.length === 0 ? "." : names.join("/");
}

export function isWhiteout(path: string): boolean {
  return path.slice(path.lastIndexOf("/") + 1).startsWith(WHITEOUT);
}

export function unescapePath(path: string, unescapeName: (name: string) => string): string {
  return path.split("/").map(unescapeName).join("/");
}

/** Runs `work` on a path. An error that only the path itself can cause refuses the archive. */
export function refuseImpossiblePath(path: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENAMETOOLONG" || code === "EILSEQ" || code === "EFBIG" || code === "EINVAL")
      throw hostile(path, `cannot exist on this file system (${code})`);
    throw error;
  }
}

export function hostile(path: string, problem: string): LazarusError {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  return new LazarusError("LAYER_HOSTILE", `the archive was refused: ${shown} ${problem}`, {
    hint: "list it with tar tvf; nothing was imported",
    details: { path },
  });
}
