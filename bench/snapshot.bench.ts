// Checkpoints and restores of a large cell compared with tar, restic, a shadow git repository, and one walk of `find`,
// the lower bound of any scan.
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { libdeflateGzip } from "../src/platform/libdeflate.ts";
import { type Bench, median, type Score, type Trial } from "./harness.ts";
import { buildCell, type CellSize, measureCell } from "./snapshot/cell.ts";
import { openFreshDisk } from "./snapshot/fresh-disk.ts";
import { type Peer, type Runner, race } from "./snapshot/race.ts";
import { buildSmallFiles } from "./snapshot/small-files.ts";
import { isInstalled, Stage } from "./snapshot/stage.ts";

const KEPT = join(import.meta.dirname, ".work", "snapshot");
const MISSION = "bench";
let longRounds = 3;
/** For measurements that take less than a second. */
let shortRounds = 7;
const SERIES = 100;
const PEAK_LIMIT_MB = 400;
const MB = 1e6;

const notes: string[] = [];

export const bench: Bench = {
  about: `The cell holds a repository of 2,000 commits and a \`node_modules\` from the npm registry; the bench builds it once.
Every figure of ours is a whole process (\`node bin/lazarus.js …\`, start, registry and fsync included), with a warm page cache;
the peers sync nothing. \`walk\` is \`find -printf\` of the cell with every field of stat. \`bare loop\` is the least that a first
checkpoint has to do in Node: the same system calls, hashes and compression without headers, a table of contents, git, a
database or a check of the result (\`bench/snapshot/bare-loop.ts\`). \`sync\` runs before each turn.
Restores in place start from a cell with a checkpoint since the last restore; a restore right after another makes git read every
file again and took 3.6 walks in an earlier run.`,
  async prepare(directory, { large, rounds }) {
    notes.length = 0;
    longRounds = rounds ?? longRounds;
    shortRounds = rounds ?? shortRounds;
    const stage = new Stage(join(KEPT, "home"), directory);
    stage.configure("gzip");
    await buildCell(stage.cell(MISSION), (text) => process.stderr.write(`  ${text} …\n`));
    stage.forget(MISSION);
    const size = measureCell(stage.cell(MISSION));
    readAll(stage, MISSION);
    notes.push(describeCell(size));
    notes.push(
      `gzip is compressed by ${libdeflateGzip() === undefined ? "Node's zlib" : "libdeflate"} on this machine.`,
    );
    for (const peer of ["restic", "pigz", "zstd", "git"])
      if (!isInstalled(peer)) notes.push(`\`${peer}\` is not installed: its rows are missing.`);
    return [
      firstCheckpoint(stage),
      zstdCheckpoint(stage),
      peakMemory(stage),
      tenChanged(stage),
      nothingChanged(stage),
      restoreInPlace(stage),
      restoreElsewhere(stage),
      series(stage),
      growth(stage, large ? [10_000, 100_000, 1_000_000] : [10_000, 100_000]),
    ];
  },
  notes: () => notes,
};

function describeCell({ files, directories, bytes, tracked }: CellSize): string {
  const count = (value: number) => value.toLocaleString("en");
  return `The cell: ${count(files)} files, ${count(directories)} directories, ${count(Math.round(bytes / MB))} MB; ${count(tracked)} files are tracked by git.`;
}

/** Files built by an earlier run may no longer be in the page cache. */
function readAll(stage: Stage, mission: string): void {
  stage.shell(`tar -C ${stage.cell(mission)} -cf - . | cat > /dev/null`);
}

const onCpu = (line: string) => notes.push(line);

const TARBALL = "cell.tar.gz";
const BARE = "bare.gz";
const BARE_LOOP = join(import.meta.dirname, "snapshot", "bare-loop.ts");

function makeTarball(stage: Stage): void {
  stage.shell(`tar -C ${stage.cell(MISSION)} -cf - . | pigz -1 > ${TARBALL}`);
}

/** An empty repository of restic. */
function initRestic(stage: Stage): void {
  stage.fresh("restic");
  stage.fresh("restic-cache");
  stage.run("restic", ["init"]);
}

function backUpWithRestic(stage: Stage): void {
  stage.run("restic", ["backup", "--quiet", stage.cell(MISSION)]);
}

function firstCheckpoint(stage: Stage): Trial {
  const ours: Runner = {
    name: "lazarus checkpoint",
    prepare: () => stage.forget(MISSION),
    run: () => stage.lazarus("checkpoint", MISSION),
  };
  const peers: Peer[] = [];
  if (isInstalled("pigz"))
    peers.push({
      name: "tar | pigz -1",
      // Node's own zlib is slower than pigz.
      goal: libdeflateGzip() === undefined ? 1.3 : 1,
      prepare: () => stage.fresh(TARBALL),
      run: () => makeTarball(stage),
    });
  if (isInstalled("restic"))
    peers.push({
      name: "restic backup",
      goal: 0.55,
      prepare: () => initRestic(stage),
      run: () => backUpWithRestic(stage),
    });
  peers.push({
    name: "bare loop",
    prepare: () => stage.fresh(BARE),
    run: () => stage.run(process.execPath, [BARE_LOOP, stage.cell(MISSION), BARE]),
  });
  const name = "first checkpoint";
  return { name, measure: () => race({ name, ours, peers, rounds: longRounds, warmUps: 0, onCpu }) };
}

function zstdCheckpoint(stage: Stage): Trial {
  const name = "first checkpoint, zstd";
  const ours: Runner = {
    name: "lazarus checkpoint",
    prepare: () => stage.forget(MISSION),
    run: () => stage.lazarus("checkpoint", MISSION),
  };
  const peer: Peer = {
    name: "tar | zstd -1 -T0",
    goal: 1.45,
    prepare: () => stage.fresh("cell.tar.zst"),
    run: () => stage.shell(`tar -C ${stage.cell(MISSION)} -cf - . | zstd -q -1 -T0 > cell.tar.zst`),
  };
  return {
    name,
    async measure() {
      if (!isInstalled("zstd")) return [];
      stage.configure("zstd");
      const scores = await race({ name, ours, peers: [peer], rounds: longRounds, warmUps: 0, onCpu });
      stage.configure("gzip");
      stage.fresh("cell.tar.zst");
      return scores;
    },
  };
}

/** Leaves a vault with one checkpoint, from which the later trials start. */
function peakMemory(stage: Stage): Trial {
  const name = "peak memory of the first checkpoint";
  return {
    name,
    measure() {
      const probes = Array.from({ length: longRounds }, () => {
        stage.forget(MISSION);
        stage.run("sync", []);
        return stage.probe("checkpoint", MISSION);
      });
      const peakMb = median(probes.map(({ peakKb }) => (peakKb * 1024) / MB));
      notes.push(
        `fsync takes ${Math.round(median(probes.map(({ syncMs }) => syncMs)))} ms of our first checkpoint; the peers sync nothing.`,
      );
      return [
        {
          name,
          ours: "lazarus checkpoint",
          oursMs: peakMb,
          peer: "limit",
          peerMs: PEAK_LIMIT_MB,
          unit: "MB",
          ratio: peakMb / PEAK_LIMIT_MB,
          goal: 1,
          rounds: longRounds,
        },
      ];
    },
  };
}

/** Changes the last line of ten tracked source files of typical size, spread over the worktree. */
function createEditor(stage: Stage): () => number {
  const worktree = join(stage.cell(MISSION), "worktree");
  const tracked = stage
    .run("git", ["-C", worktree, "ls-files", "*.js", "*.ts"])
    .trim()
    .split("\n")
    .filter((path) => {
      const { size } = statSync(join(worktree, path));
      return size >= 4000 && size <= 16_000;
    });
  const files = Array.from({ length: 10 }, (_, i) =>
    join(worktree, tracked[Math.floor(((i + 0.5) * tracked.length) / 10)]!),
  );
  const contents = files.map((file) => readFileSync(file, "utf8").replace(/\/\/ edit .*\n$/, ""));
  let edits = Date.now();
  return () => {
    edits += 1;
    let bytes = 0;
    for (const [i, file] of files.entries()) {
      const text = `${contents[i]}// edit ${edits}\n`;
      writeFileSync(file, text);
      bytes += Buffer.byteLength(text);
    }
    return bytes;
  };
}

function walkOf(stage: Stage, goal: number): Peer {
  const format = "%p %y %m %U %G %s %T@ %C@ %i %n\\n";
  const cell = stage.cell(MISSION);
  return { name: "walk", goal, run: () => stage.shell(`find ${cell} -printf '${format}' > /dev/null`) };
}

function tenChanged(stage: Stage): Trial {
  const name = "ten changed files";
  return {
    name,
    async measure() {
      const edit = createEditor(stage);
      const ours: Runner = {
        name: "lazarus checkpoint",
        prepare: edit,
        run: () => stage.lazarus("checkpoint", MISSION),
      };
      const peers: Peer[] = [walkOf(stage, 2)];
      stage.checkpoint(MISSION);
      if (isInstalled("restic")) {
        initRestic(stage);
        backUpWithRestic(stage);
        peers.push({
          name: "restic backup",
          goal: 0.1,
          prepare: edit,
          run: () => backUpWithRestic(stage),
        });
      }
      if (isInstalled("git"))
        peers.push(
          shadowGit(stage, { name: "shadow git: add -Af, commit", add: "--force", goal: 1, edit }),
          shadowGit(stage, { name: "shadow git without ignored files", add: "", edit }),
        );
      const scores = await race({ name, ours, peers, rounds: shortRounds, warmUps: 1 });
      edit();
      const { syncMs } = stage.probe("checkpoint", MISSION);
      notes.push(`fsync takes ${Math.round(syncMs)} ms of our checkpoint of ten changed files.`);
      return scores;
    },
  };
}

/** What editors do: a private repository whose work tree is the user's. */
function shadowGit(
  stage: Stage,
  { name, add, goal, edit }: { name: string; add: string; goal?: number; edit: () => unknown },
): Peer {
  const directory = stage.fresh(`shadow-${add.replaceAll("-", "") || "plain"}`);
  const git = `git --git-dir=${directory} --work-tree=${join(stage.cell(MISSION), "worktree")}`;
  const identity = "-c user.name=bench -c user.email=bench@localhost -c gc.auto=0 -c core.fsync=none";
  const commit = `${git} ${identity} add -A ${add} . && ${git} ${identity} commit -q -m turn`;
  stage.shell(`${git} init -q && ${commit}`);
  return {
    name,
    ...(goal === undefined ? {} : { goal }),
    prepare: edit,
    run: () => stage.shell(commit),
  };
}

function nothingChanged(stage: Stage): Trial {
  const name = "nothing changed";
  return {
    name,
    async measure() {
      await checkpointTwice(stage);
      const before = stage.vaultBytes(MISSION);
      const ours: Runner = { name: "lazarus checkpoint", run: () => stage.lazarus("checkpoint", MISSION) };
      const scores = await race({
        name,
        ours,
        peers: [walkOf(stage, 1.5)],
        rounds: shortRounds,
        warmUps: 1,
      });
      const grown = stage.vaultBytes(MISSION) - before;
      const growth: Score = {
        name: "nothing changed: vault growth without index.json",
        ours: "lazarus checkpoint",
        oursMs: grown,
        peer: "limit",
        peerMs: 0,
        unit: "bytes",
        ratio: grown === 0 ? 0 : Number.POSITIVE_INFINITY,
        goal: 0,
        rounds: shortRounds,
      };
      return [...scores, growth];
    },
  };
}

/** Takes a checkpoint, and another once recently written files are past the racy-clean window. */
async function checkpointTwice(stage: Stage): Promise<void> {
  stage.checkpoint(MISSION);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  stage.checkpoint(MISSION);
}

function restoreInPlace(stage: Stage): Trial {
  const name = "restore of ten changed files in place";
  return {
    name,
    async measure() {
      const edit = createEditor(stage);
      await checkpointTwice(stage);
      let id = "latest";
      const ours: Runner = {
        name: "lazarus restore",
        // The usual case: a recent checkpoint, then ten files to restore.
        prepare() {
          ({ id } = stage.checkpoint(MISSION));
          edit();
        },
        run: () => stage.lazarus("restore", MISSION, id),
      };
      return race({ name, ours, peers: [walkOf(stage, 2.5)], rounds: shortRounds, warmUps: 1 });
    },
  };
}

function restoreElsewhere(stage: Stage): Trial {
  const name = "full restore into an empty directory";
  return {
    name,
    async measure() {
      using disk = openFreshDisk(stage.work);
      notes.push(disk.about);
      stage.checkpoint(MISSION);
      let target = "";
      const prepare = () => {
        target = disk.path();
      };
      const ours: Runner = {
        name: "lazarus restore --to",
        prepare,
        run: () => stage.lazarus("restore", MISSION, "latest", "--to", target),
      };
      const peers: Peer[] = [];
      if (isInstalled("pigz")) {
        if (!stage.has(TARBALL)) makeTarball(stage);
        peers.push({
          name: "tar xzf",
          goal: 1.2,
          prepare() {
            prepare();
            mkdirSync(target);
          },
          run: () => stage.shell(`tar -C ${target} -xzf ${TARBALL}`),
        });
      }
      if (isInstalled("restic")) {
        if (!stage.has("restic")) {
          initRestic(stage);
          backUpWithRestic(stage);
        }
        peers.push({
          name: "restic restore",
          goal: 0.45,
          prepare,
          run: () => stage.run("restic", ["restore", "--quiet", "latest", "--target", target]),
        });
      }
      // Awaited here: the disk is unmounted when this function returns.
      return await race({ name, ours, peers, rounds: longRounds, warmUps: 0, onCpu });
    },
  };
}

function series(stage: Stage): Trial {
  const name = `${SERIES} checkpoints of ten small changes`;
  const timed = (work: () => unknown) => {
    const start = performance.now();
    work();
    return performance.now() - start;
  };
  return {
    name,
    async measure() {
      stage.forget(MISSION);
      const edit = createEditor(stage);
      edit();
      await checkpointTwice(stage);
      const before = stage.vaultBytes(MISSION);
      let changed = 0;
      const times: number[] = [];
      for (let n = 0; n < SERIES; n += 1) {
        changed += edit();
        times.push(timed(() => stage.checkpoint(MISSION)));
      }
      const grown = stage.vaultBytes(MISSION) - before;
      const [first, last] = [median(times.slice(0, 10)), median(times.slice(-10))];
      notes.push(
        `The slowest of the ${SERIES} checkpoints took ${Math.round(Math.max(...times))} ms (it also merges layers).`,
      );
      const row = { ours: "lazarus checkpoint", rounds: 1 };
      return [
        {
          ...row,
          name: `${name}: vault growth`,
          oursMs: grown / MB,
          peer: "changed bytes",
          peerMs: changed / MB,
          unit: "MB",
          ratio: grown / changed,
          goal: 2,
        },
        {
          ...row,
          name: `${name}: the last ten`,
          oursMs: last,
          peer: "the first ten",
          peerMs: first,
          ratio: last / first,
          goal: 1.1,
        },
      ];
    },
  };
}

function growth(stage: Stage, counts: readonly number[]): Trial {
  const name = "linear growth";
  const timed = (work: () => unknown) => {
    stage.run("sync", []);
    const start = performance.now();
    work();
    return performance.now() - start;
  };
  return {
    name,
    measure() {
      const measured = counts.map((count) => {
        const mission = `small-${count}`;
        buildSmallFiles(stage.cell(mission), count);
        readAll(stage, mission);
        const first: number[] = [];
        const again: number[] = [];
        for (let round = 0; round < (count > 100_000 ? 1 : longRounds); round += 1) {
          stage.forget(mission);
          first.push(timed(() => stage.checkpoint(mission)));
          again.push(timed(() => stage.checkpoint(mission)));
        }
        stage.forget(mission);
        return { count, first: median(first), again: median(again), rounds: first.length };
      });
      const scores: Score[] = [];
      for (const [i, larger] of measured.entries()) {
        const smaller = measured[i - 1];
        if (smaller === undefined) continue;
        for (const [kind, words] of [
          ["first", "first checkpoint"],
          ["again", "nothing changed"],
        ] as const)
          scores.push({
            name: `linear growth, ${words}: per file`,
            ours: `${larger.count.toLocaleString("en")} files`,
            oursMs: (larger[kind] * 1000) / larger.count,
            peer: `${smaller.count.toLocaleString("en")} files`,
            peerMs: (smaller[kind] * 1000) / smaller.count,
            unit: "µs",
            ratio: larger[kind] / larger.count / (smaller[kind] / smaller.count),
            goal: 1.1,
            rounds: larger.rounds,
          });
      }
      return scores;
    },
  };
}
