// Many live points of one small change each, taken by one process as the pit does: bytes per point, and whether later points
// take longer than earlier ones. Then a log that grows a little before each point.
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { MissionContext } from "../../src/snapshot/mission-context.ts";
import { openMission } from "../../src/snapshot/open-mission.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { median, type Trial } from "../harness.ts";
import { buildSmallFiles, smallFilePath } from "../snapshot/small-files.ts";
import { directoryBytes, row } from "./figures.ts";

const LIMIT_BYTES = 4096;
const CHANGE_BYTES = 2048;
const LIVE = { reason: "live", git: "deferred", onlyIfChanged: true } as const;

export interface PointsOptions {
  readonly home: string;
  readonly files: number;
  readonly points: number;
  readonly note: (line: string) => void;
}

async function openSaved(home: string, files: number): Promise<MissionContext> {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "config.json"), JSON.stringify({ retention: { auto: false } }));
  const context = openMission("points", { home });
  buildSmallFiles(context.cellRoot, files);
  return context;
}

export function livePoints({ home, files, points, note }: PointsOptions): Trial {
  const name = `${points.toLocaleString("en")} live points of one 2 KB change each`;
  return {
    name,
    async measure() {
      const context = await openSaved(home, files);
      await takeCheckpoint(context, { reason: "baseline" });
      const before = directoryBytes(context.vault.root);
      const times: number[] = [];
      let compressed = 0;
      for (let i = 0; i < points; i += 1) {
        const text = randomBytes(CHANGE_BYTES / 2).toString("hex");
        compressed += gzipSync(text).length;
        // Spread over the cell, each file at most a few times.
        const path = smallFilePath(Math.floor(((i * 0.618_034) % 1) * files));
        writeFileSync(join(context.cellRoot, path), text);
        const start = performance.now();
        await takeCheckpoint(context, { ...LIVE, dirty: { paths: new Set([path]), trees: new Set() } });
        times.push(performance.now() - start);
      }
      const beyond = (directoryBytes(context.vault.root) - before - compressed) / points;
      const window = Math.min(100, Math.floor(points / 3));
      const second = median(times.slice(window, 2 * window));
      const last = median(times.slice(-window));
      note(`A change of 2 KB compresses to ${Math.round(compressed / points)} bytes.`);
      return [
        row(
          `${name}: beyond the compressed change, per point`,
          { name: "vault", value: beyond },
          { name: "limit", value: LIMIT_BYTES },
          { goal: 1, rounds: points, unit: "bytes" },
        ),
        row(
          name,
          { name: `one of the last ${window}`, value: last },
          { name: `one of the second ${window}`, value: second },
          { goal: 1.2, rounds: window },
        ),
      ];
    },
  };
}

export function growingLog({ home, files, note }: PointsOptions, logMb: number): Trial {
  const name = `a log of ${logMb} MB that grows by 4 KB per point`;
  const points = 20;
  return {
    name,
    async measure() {
      const context = await openSaved(home, files);
      const log = join(context.cellRoot, "worktree", "build.log");
      const line = () => `${randomBytes(48).toString("base64")}\n`;
      const text = Array.from({ length: 16_000 }, line).join("");
      for (let written = 0; written < logMb * 1e6; written += text.length) appendFileSync(log, text);
      await takeCheckpoint(context, { reason: "baseline" });
      const before = directoryBytes(context.vault.root);
      const times: number[] = [];
      for (let i = 0; i < points; i += 1) {
        appendFileSync(log, Array.from({ length: 63 }, line).join(""));
        const start = performance.now();
        await takeCheckpoint(context, LIVE);
        times.push(performance.now() - start);
      }
      const perPoint = (directoryBytes(context.vault.root) - before) / points;
      note(
        `A point of the growing log took ${median(times).toFixed(0)} ms: the old bytes are read and hashed.`,
      );
      return [
        row(
          `${name}: per point`,
          { name: "vault", value: perPoint / 1000 },
          { name: "limit", value: 16 },
          { goal: 1, rounds: points, unit: "kB" },
        ),
      ];
    },
  };
}
