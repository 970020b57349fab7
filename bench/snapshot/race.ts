// Ours and several peers take turns in each round. `sync` runs before each turn, so that none pays for the unwritten
// pages of the previous one.
import { readFileSync } from "node:fs";
import { type Contender, median, runProgram, type Score } from "../harness.ts";

export interface Runner extends Contender {
  /** Runs before each turn, untimed. */
  prepare?(): unknown;
}

export interface Peer extends Runner {
  /** The highest acceptable ratio of ours ÷ peer. */
  readonly goal?: number;
}

export interface Race {
  readonly name: string;
  readonly ours: Runner;
  readonly peers: readonly Peer[];
  readonly rounds: number;
  /** Rounds that are not counted. */
  readonly warmUps: number;
  /** Called with one line: the median CPU time of each program (Linux only). */
  readonly onCpu?: (line: string) => void;
}

export async function race({ name, ours, peers, rounds, warmUps, onCpu }: Race): Promise<Score[]> {
  const all: Runner[] = [ours, ...peers];
  const times = new Map(all.map((runner) => [runner, [] as number[]]));
  const cpuTimes = new Map(all.map((runner) => [runner, [] as number[]]));
  for (let round = -warmUps; round < rounds; round += 1) {
    // Rotate who goes first.
    const first = (((round + warmUps) % all.length) + all.length) % all.length;
    for (const runner of [...all.slice(first), ...all.slice(0, first)]) {
      await runner.prepare?.();
      runProgram("sync", []);
      const start = performance.now();
      const cpuStart = childCpuSeconds();
      await runner.run();
      const ms = performance.now() - start;
      if (round < 0) continue;
      times.get(runner)!.push(ms);
      if (cpuStart !== undefined) cpuTimes.get(runner)!.push(childCpuSeconds()! - cpuStart);
    }
  }
  if (cpuTimes.get(ours)!.length > 0)
    onCpu?.(
      `CPU time of ${name}: ${all
        .map((runner) => `\`${runner.name}\` ${median(cpuTimes.get(runner)!).toFixed(1)} s`)
        .join(", ")}.`,
    );
  const ourTimes = times.get(ours)!;
  return peers.map((peer) => ({
    name,
    ours: ours.name,
    oursMs: median(ourTimes),
    peer: peer.name,
    peerMs: median(times.get(peer)!),
    ratio: median(ourTimes.map((ms, round) => ms / times.get(peer)![round]!)),
    goal: peer.goal,
    rounds,
  }));
}

const TICKS_PER_SECOND = 100;

/** User and system time of all child processes that have ended, and of theirs. */
function childCpuSeconds(): number | undefined {
  try {
    // After the program's name, which may contain spaces.
    const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
    return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}
