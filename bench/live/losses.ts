// What protection must not lose: work that was finished before a SIGKILL of everything, and changes that the watch did not report.
import { appendFileSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { killRound } from "../../test/pit/loss-rounds.ts";
import { runProgram, type Trial } from "../harness.ts";
import { buildSmallFiles } from "../snapshot/small-files.ts";
import type { Stage } from "../snapshot/stage.ts";
import { pause, row } from "./figures.ts";
import { openPitWorld } from "./pit-world.ts";

const FIRST_SEED = 1;
const WAIT_MS = 120_000;
const WORK_ROUNDS = 10;

export function randomKills(kills: number, note: (line: string) => void): Trial {
  const name = `work lost after SIGKILL of pit, keeper and agent, the most of ${kills} kills`;
  return {
    name,
    async measure() {
      let worst = { lostMs: 0, limitMs: 1 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + kills; seed += 1) {
        const loss = await killRound(seed);
        if (loss.lostMs / loss.limitMs >= worst.lostMs / worst.limitMs) worst = loss;
      }
      note(
        "The kills are made with `protect_within_seconds` 1 instead of 30. The limit includes the delays of the machine, measured in each round.",
      );
      return [
        row(
          name,
          { name: "age of the oldest unsaved work", value: worst.lostMs },
          { name: "limit", value: worst.limitMs },
          { goal: 1, rounds: kills },
        ),
      ];
    },
  };
}

/** Audits every few seconds during all kinds of changes. A change that only an audit can see proves that the last one took place. */
export function missedChanges(stage: Stage, files: number): Trial {
  const name = "changes that the watch missed (lazarus_watch_missed_total)";
  return {
    name,
    async measure() {
      const archive = join(stage.work, "audited.tar");
      buildSmallFiles(join(stage.work, "audited"), files);
      runProgram("tar", ["-C", join(stage.work, "audited", "worktree"), "-cf", archive, "."]);
      await using pit = await openPitWorld(join(stage.work, "missed"), stage.launcher, {
        audit_minutes: 0.05,
        quiet_seconds: 0.2,
        protect_share: 1,
      });
      const worktree = join(pit.cell("missed"), "worktree");
      mkdirSync(worktree, { recursive: true });
      const [inside, outside] = [join(worktree, "linked"), join(pit.home, "linked")];
      writeFileSync(inside, "linked");
      linkSync(inside, outside);
      await pit.protect("missed");
      await pit.watched("missed");
      for (let i = 0; i < WORK_ROUNDS; i += 1) await change(worktree, archive, i);
      // Wait until the watch has reported everything else: otherwise an earlier audit may find this write.
      await pit.watched("missed");
      const seen = await pit.metric("lazarus_watch_invisible_total");
      appendFileSync(outside, "through another name");
      const until = performance.now() + WAIT_MS;
      while ((await pit.metric("lazarus_watch_invisible_total")) === seen) {
        if (performance.now() > until) throw new Error("no audit found a write through an outside link");
        await pause(200);
      }
      const missed = await pit.metric("lazarus_watch_missed_total");
      const figures = row(
        name,
        { name: "missed", value: missed },
        { name: "limit", value: 0 },
        { goal: 0, rounds: WORK_ROUNDS, unit: "changes" },
      );
      return [{ ...figures, ratio: missed }];
    },
  };
}

/** A burst of new files, then a rename, an overwrite and a removal of directories. */
async function change(worktree: string, archive: string, round: number): Promise<void> {
  const at = (name: string) => join(worktree, name);
  mkdirSync(at("new"));
  runProgram("tar", ["-C", at("new"), "-xf", archive]);
  await pause(500);
  rmSync(at("kept"), { recursive: true, force: true });
  renameSync(at("new"), at("kept"));
  appendFileSync(at("log"), `round ${round}\n`);
  await pause(1500);
}
