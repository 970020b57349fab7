// A file of Lazarus in a directory where an agent's CLI looks for plugins or hooks: installed and removed as a whole. A
// file that Lazarus did not write is refused. Pure.
import type { InstallPlan } from "./adapter.ts";

const MARK = "Written by Lazarus";

/** `text` contains the mark "Written by Lazarus". */
export function ownFile(path: string, text: string, mode?: number): InstallPlan {
  const refuseOthers = (found: string) => {
    if (!found.includes(MARK)) throw new Error(`${path} was not written by Lazarus`);
  };
  return {
    path,
    ...(mode !== undefined && { mode }),
    apply(found) {
      if (found !== null) refuseOthers(found);
      return text;
    },
    remove(found) {
      refuseOthers(found);
      return null;
    },
  };
}
