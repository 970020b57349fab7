// The API: response times of heartbeats at a steady 100 a second.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { resolveConfig } from "../src/cell/config.ts";
import { initCell } from "../src/cell/init.ts";
import { parseMissionId } from "../src/cell/mission-id.ts";
import { systemMachine } from "../src/platform/machine.ts";
import { sendHeartbeats } from "../test/http/send-heartbeats.ts";
import type { Bench, Score } from "./harness.ts";

const LAUNCHER = join(import.meta.dirname, "..", "bin", "lazarus.js");
const BARE = join(import.meta.dirname, "http", "bare-server.ts");
const MISSIONS = 500;
const COUNT = 1000;
const PER_SECOND = 100;
const ROUNDS = 3;
const LIMIT_MS = 20;

const notes: string[] = [];

export const bench: Bench = {
  about: `A real \`lazarus pit\` with ${MISSIONS} cells in a separate process receives ${COUNT.toLocaleString("en")} heartbeats at a
steady ${PER_SECOND} a second over 64 connections; each is timed from the moment it was due, so that a slow response also delays the
next ones. The peer is a bare \`node:http\` server that answers 202 and writes nothing; the two alternate.`,
  prepare(directory) {
    const home = join(directory, "home");
    const env = { HOME: directory, LAZARUS_HOME: home, PATH: process.env.PATH ?? "" };
    const missions = Array.from({ length: MISSIONS }, (_, n) => `mission-${n}`);
    const { config } = resolveConfig({ env, cwd: directory, isRoot: false }, undefined, {});
    for (const mission of missions) initCell(systemMachine, config, parseMissionId(mission));
    return [{ name: "heartbeats over HTTP", measure: () => measure(home, env, missions) }];
  },
  notes: () => notes,
};

async function measure(
  home: string,
  env: Record<string, string>,
  missions: readonly string[],
): Promise<Score[]> {
  const pit = spawn(process.execPath, [LAUNCHER, "pit"], { env, stdio: "ignore" });
  const bare = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", BARE], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const { url, token } = await addressOf(home);
    const { value: port } = await createInterface(bare.stdout!)[Symbol.asyncIterator]().next();
    const rounds: { ours: number[]; peer: number[] }[] = [];
    for (let round = -1; round < ROUNDS; round += 1) {
      const count = round < 0 ? COUNT / 10 : COUNT;
      const ours = await sendHeartbeats({ url, token, missions, count, perSecond: PER_SECOND });
      const peer = await sendHeartbeats({
        url: `http://127.0.0.1:${port}`,
        token,
        missions,
        count,
        perSecond: PER_SECOND,
      });
      if (round >= 0) rounds.push({ ours, peer });
    }
    const row = (share: number) => {
      const at = (times: number[]) => times[Math.floor(times.length * share)]!;
      const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
      return {
        oursMs: middle(rounds.map(({ ours }) => at(ours))),
        peerMs: middle(rounds.map(({ peer }) => at(peer))),
      };
    };
    const p99 = row(0.99);
    const p50 = row(0.5);
    const base = { ours: "lazarus pit", rounds: ROUNDS };
    notes.push(`Slowest response: ${Math.max(...rounds.map(({ ours }) => ours.at(-1)!)).toFixed(1)} ms.`);
    return [
      {
        ...base,
        name: `${PER_SECOND} heartbeats/s, p99 within ${LIMIT_MS} ms`,
        oursMs: p99.oursMs,
        peer: "the limit",
        peerMs: LIMIT_MS,
        ratio: p99.oursMs / LIMIT_MS,
        goal: 1,
      },
      {
        ...base,
        ...p99,
        name: "the same, p99",
        peer: "bare node:http",
        ratio: p99.oursMs / p99.peerMs,
        goal: undefined,
      },
      {
        ...base,
        ...p50,
        name: "the same, median",
        peer: "bare node:http",
        ratio: p50.oursMs / p50.peerMs,
        goal: undefined,
      },
    ];
  } finally {
    await end(pit, "SIGTERM");
    await end(bare, "SIGKILL");
  }
}

async function addressOf(home: string): Promise<{ url: string; token: string }> {
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      const { url } = JSON.parse(readFileSync(join(home, "run", "http.json"), "utf8"));
      return { url, token: readFileSync(join(home, "run", "token"), "utf8").trim() };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error("the pit did not write http.json");
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
