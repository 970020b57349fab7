// Which directories of a mission are watched, and which changes in them are a reason to save.
import { basename, dirname, join } from "node:path";
import type { MissionId } from "../../cell/mission-id.ts";
import { excludedPatterns } from "../../snapshot/capture/survey.ts";
import { findCell } from "../../snapshot/mission-context.ts";
import { outsideWorktree, rootOf, WORKTREE } from "../../snapshot/model/cell-tree.ts";
import { readSettings } from "../../snapshot/settings.ts";
import type { PitContext } from "../context.ts";
import type { WatchedTree } from "../watch/tree-watcher.ts";

/**
 * What Lazarus itself writes into a cell while an agent works: part of the next point, but no reason for one. The copy of the
 * conversation changes with what the agent's hooks report, which is a reason.
 */
const OWN_FILES = [
  "/logs/agent.log*",
  "/logs/daemon.log*",
  "/conversation",
  "/conversation/**",
  "/state/git-outside",
  "/state/git-outside/**",
  "**/refs/lazarus",
  "**/refs/lazarus/**",
];

/**
 * The trees of all missions under the settings of this moment. Called often: it opens neither vault nor history, and reads the
 * settings once.
 */
export function liveTrees({ effective, config }: PitContext): (mission: MissionId) => WatchedTree {
  const quiet = [...OWN_FILES, ...heartbeatFiles(config.heartbeat_file)];
  let ignore: readonly string[] | undefined;
  return (mission) => {
    // Not before the call: the caller handles settings that cannot be read.
    ignore ??= excludedPatterns({ settings: readSettings(effective.document, effective.file) });
    const { tree } = findCell(config, mission);
    const outside = outsideWorktree(tree);
    const roots = [
      { path: rootOf(tree), prefix: "" },
      ...(outside === undefined ? [] : [{ path: outside.path, prefix: WORKTREE }]),
    ];
    return { roots, ignore, quiet };
  };
}

/** The heartbeat and the temporary files that replace it. */
function heartbeatFiles(file: string): string[] {
  return [`/${file}`, `/${join(dirname(file), `.${basename(file)}.*.tmp`)}`];
}
