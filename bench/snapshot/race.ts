// Ours and several peers take turns in each round. `sync` runs before each turn, so that none pays for the unwritten
// pages of the previous one.
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
}

export async function race({ name, ours, peers, rounds, warmUps }: Race): Promise<Score[]> {
  const all: Runner[] = [ours, ...peers];
  const times = new Map(all.map((runner) => [runner, [] as number[]]));
  for (let round = -warmUps; round < rounds; round += 1) {
    // Rotate who goes first.
    const first = (((round + warmUps) % all.length) + all.length) % all.length;
    for (const runner of [...all.slice(first), ...all.slice(0, first)]) {
      await runner.prepare?.();
      runProgram("sync", []);
      const start = performance.now();
      await runner.run();
      const ms = performance.now() - start;
      if (round >= 0) times.get(runner)!.push(ms);
    }
  }
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
