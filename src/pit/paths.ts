// Where the pit itself leaves its marks below `run_dir`, for whoever looks for it or talks to it. Only names.
import { join } from "node:path";

/** Held by the pit for as long as it lives. */
export function pitLockFile(runDir: string): string {
  return join(runDir, "pit.lock");
}

/** The same for every pit of a home, so that an agent can be told of it before there is one. */
export function pitSocketFile(runDir: string): string {
  return join(runDir, "pit.sock");
}
