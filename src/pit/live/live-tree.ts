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

/** Called often: it opens neither vault nor history. */
export function liveTree({ effective, config }: PitContext, mission: MissionId): WatchedTree {
  const { tree } = findCell(config, mission);
  const outside = outsideWorktree(tree);
  return {
    roots: [
      { path: rootOf(tree), prefix: "" },
      ...(outside === undefined ? [] : [{ path: outside.path, prefix: WORKTREE }]),
    ],
    ignore: excludedPatterns({ settings: readSettings(effective.document, effective.file) }),
    quiet: [...OWN_FILES, ...heartbeatFiles(config.heartbeat_file)],
  };
}

/** The heartbeat and the temporary files that replace it. */
function heartbeatFiles(file: string): string[] {
  return [`/${file}`, `/${join(dirname(file), `.${basename(file)}.*.tmp`)}`];
}
