// Ten changed files in a large cell: a capture inside one process from the set of changed paths, as in the pit, and
// `lazarus checkpoint` through the running pit. Both are compared with one walk and with what other tools do after every
// turn, in the same rounds.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { openMission } from "../../src/snapshot/open-mission.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { runProgram, type Trial } from "../harness.ts";
import { type Peer, type Runner, race } from "../snapshot/race.ts";
import { buildSmallFiles, smallFilePath } from "../snapshot/small-files.ts";
import { isInstalled, type Stage } from "../snapshot/stage.ts";
import { openPitWorld } from "./pit-world.ts";

const MISSION = "ten";
const ROUNDS = 9;
const LIMIT_MS = 50;
export const LIVE = { reason: "live", git: "deferred", onlyIfChanged: true } as const;

export function tenFiles(stage: Stage, files: number, note: (line: string) => void): Trial {
  const name = `ten changed files of ${files.toLocaleString("en")}`;
  return {
    name,
    async measure() {
      for (const peer of ["git", "restic"])
        if (!isInstalled(peer)) note(`\`${peer}\` is not installed: its rows are missing.`);
      return [...(await inProcess(stage, files, name)), ...(await throughPit(stage, files, name))];
    },
  };
}

/** Appends a line to ten files; returns their paths in the cell. */
export function createEditor(cell: string, files: number): () => string[] {
  const paths = Array.from({ length: 10 }, (_, i) => smallFilePath(Math.floor(((i + 0.5) * files) / 10)));
  let edits = 0;
  return () => {
    edits += 1;
    for (const path of paths) appendFileSync(join(cell, path), `edit ${edits}\n`);
    return paths;
  };
}

async function inProcess(stage: Stage, files: number, name: string) {
  const cell = stage.cell(MISSION);
  buildSmallFiles(cell, files);
  const edit = createEditor(cell, files);
  const context = openMission(MISSION, { home: stage.home });
  await takeCheckpoint(context, { reason: "baseline" });
  // By now the stat of the files is old enough to be trusted.
  await takeCheckpoint(context, LIVE);
  let changed: string[] = [];
  const ours: Runner = {
    name: "live point, in process",
    prepare() {
      changed = edit();
    },
    run: () => takeCheckpoint(context, { ...LIVE, dirty: { paths: new Set(changed), trees: new Set() } }),
  };
  const walk: Peer = {
    name: "find",
    goal: 0.1,
    run: () => stage.shell(`find ${cell} -printf '%p %y %m %U %G %s %T@ %C@ %i %n\\n' > /dev/null`),
  };
  const limit: Peer = {
    name: `${LIMIT_MS} ms`,
    goal: 1,
    run: () => new Promise((resolve) => setTimeout(resolve, LIMIT_MS)),
  };
  const peers = [walk, ...shadowGit(stage, cell, edit), ...restic(stage, cell, edit), limit];
  return race({ name, ours, peers, rounds: ROUNDS, warmUps: 2 });
}

async function throughPit(stage: Stage, files: number, name: string) {
  await using pit = await openPitWorld(join(stage.work, "ten-pit"), stage.launcher);
  const cell = pit.cell(MISSION);
  buildSmallFiles(cell, files);
  await pit.protect(MISSION);
  await pit.watched(MISSION);
  const run = (...words: string[]) => runProgram(process.execPath, words, { env: pit.env, cwd: pit.home });
  const ours: Runner = {
    name: "lazarus checkpoint, through the pit",
    prepare: createEditor(cell, files),
    run: () => run(stage.launcher, "checkpoint", MISSION),
  };
  const node: Peer = { name: "node -e 0", goal: 3, run: () => run("-e", "0") };
  // Awaited: the pit ends when this function returns.
  return await race({ name, ours, peers: [node], rounds: ROUNDS, warmUps: 2 });
}

/** What editors do: a private repository whose work tree is the user's. */
function shadowGit(stage: Stage, cell: string, edit: () => unknown): Peer[] {
  if (!isInstalled("git")) return [];
  const git = `git --git-dir=${stage.fresh("shadow")} --work-tree=${join(cell, "worktree")}`;
  const identity = "-c user.name=bench -c user.email=bench@localhost -c gc.auto=0 -c core.fsync=none";
  const commit = `${git} ${identity} add -A . && ${git} ${identity} commit -q -m turn`;
  stage.shell(`${git} init -q && ${commit}`);
  return [{ name: "shadow git: add -A, commit", goal: 0.1, prepare: edit, run: () => stage.shell(commit) }];
}

function restic(stage: Stage, cell: string, edit: () => unknown): Peer[] {
  if (!isInstalled("restic")) return [];
  stage.fresh("restic");
  const backup = () => stage.run("restic", ["backup", "--quiet", cell]);
  stage.run("restic", ["init"]);
  backup();
  return [{ name: "restic backup", prepare: edit, run: backup }];
}
