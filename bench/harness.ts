// Side-by-side measurement: ours and a peer take turns within one run, so that noise on the machine affects both. The
// result is the median over all rounds of ours ÷ peer; the median times are for orientation.
import { spawnSync } from "node:child_process";

export interface Contender {
  readonly name: string;
  run(): unknown;
}

export interface Contest {
  readonly name: string;
  readonly ours: Contender;
  readonly peer: Contender;
  /** The highest acceptable ratio; absent if there is no goal. */
  readonly goal?: number;
  readonly rounds: number;
  /** Runs before every turn of either side, untimed. */
  before?(): unknown;
}

/** A measurement that returns its own rows: several peers per round, or figures other than times. */
export interface Trial {
  readonly name: string;
  measure(): Score[] | Promise<Score[]>;
}

export interface BenchOptions {
  /** `--large`: include measurements that take many minutes. */
  readonly large: boolean;
  /** `--rounds`, for trials; contests get it from the runner. */
  readonly rounds?: number | undefined;
  /** `--files N`, `--points N`: override the bench's size, for a short run. */
  readonly files?: number | undefined;
  readonly points?: number | undefined;
  /** `--kills N`: how often everything is killed. */
  readonly kills?: number | undefined;
}

/** Every `*.bench.ts` exports one of these as `bench`. */
export interface Bench {
  /** A paragraph for the document: what is measured, and on what data. */
  readonly about: string;
  /** Creates the contests. `directory` is empty and removed afterwards. */
  prepare(
    directory: string,
    options: BenchOptions,
  ): readonly (Contest | Trial)[] | Promise<readonly (Contest | Trial)[]>;
  /** Lines below the table, read after the last contest. */
  notes?(): readonly string[];
}

export interface Score {
  readonly name: string;
  readonly ours: string;
  readonly oursMs: number;
  readonly peer: string;
  readonly peerMs: number;
  readonly ratio: number;
  readonly goal: number | undefined;
  readonly rounds: number;
  /** The unit of both figures; milliseconds by default. */
  readonly unit?: string;
}

const WARM_UPS = 2;

export async function compete(contest: Contest): Promise<Score> {
  const oursMs: number[] = [];
  const peerMs: number[] = [];
  const turn = async ({ run }: Contender): Promise<number> => {
    await contest.before?.();
    const start = performance.now();
    await run();
    return performance.now() - start;
  };
  for (let round = -WARM_UPS; round < contest.rounds; round += 1) {
    // Alternate the order: the second side finds warmer caches.
    const oursFirst = round % 2 === 0;
    const first = await turn(oursFirst ? contest.ours : contest.peer);
    const second = await turn(oursFirst ? contest.peer : contest.ours);
    if (round < 0) continue;
    oursMs.push(oursFirst ? first : second);
    peerMs.push(oursFirst ? second : first);
  }
  return {
    name: contest.name,
    ours: contest.ours.name,
    oursMs: median(oursMs),
    peer: contest.peer.name,
    peerMs: median(peerMs),
    ratio: median(oursMs.map((ms, round) => ms / peerMs[round]!)),
    goal: contest.goal,
    rounds: contest.rounds,
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function isMet({ ratio, goal }: Score): boolean {
  return goal === undefined || ratio <= goal;
}

export function formatScores(scores: readonly Score[]): string {
  const rows = scores.map((score) => [
    score.name,
    code(score.ours),
    formatFigure(score.oursMs, score.unit),
    code(score.peer),
    formatFigure(score.peerMs, score.unit),
    score.ratio.toFixed(2),
    score.goal === undefined ? "–" : `≤ ${score.goal}`,
    score.goal === undefined ? "–" : isMet(score) ? "met" : "**missed**",
    String(score.rounds),
  ]);
  const head = ["what", "ours", "ms", "peer", "ms", "ratio", "goal", "verdict", "rounds"];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}

/** Escapes pipes, which separate cells even inside backquotes. */
function code(text: string): string {
  return `\`${text.replaceAll("|", "\\|")}\``;
}

function formatFigure(figure: number, unit: string | undefined): string {
  const digits = figure >= 100 ? figure.toFixed(0) : figure.toFixed(1);
  return unit === undefined ? digits : `${digits} ${unit}`;
}

/** Runs a program and throws if it fails, so that a failure never counts as a fast result. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; output?: boolean } = {},
): string {
  const { status, error, stdout, stderr } = spawnSync(program, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
    stdio: ["ignore", options.output ? "pipe" : "ignore", "pipe"],
    maxBuffer: 2 ** 30,
    encoding: "utf8",
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${status}: ${stderr}`);
  return stdout;
}
