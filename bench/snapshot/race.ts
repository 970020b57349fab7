// One of ours against several peers that take turns in the same round. Before each turn the disk is let settle, so that
// nobody pays for what the one before left unwritten.
import { type Contender, median, runProgram, type Score } from "../harness.ts";

export interface Runner extends Contender {
  /** Untimed, before each turn. */
  prepare?(): unknown;
}

export interface Peer extends Runner {
  /** The highest ratio ours ÷ peer that still is good. */
  readonly goal?: number;
}

export interface Race {
  readonly name: string;
  readonly ours: Runner;
  readonly peers: readonly Peer[];
  readonly rounds: number;
  /** Turns before those that count. */
  readonly warmUps: number;
}

export async function race({ name, ours, peers, rounds, warmUps }: Race): Promise<Score[]> {
  const all: Runner[] = [ours, ...peers];
  const times = new Map(all.map((runner) => [runner, [] as number[]]));
  for (let round = -warmUps; round < rounds; round += 1) {
    // Who goes first moves on by one each round.
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
