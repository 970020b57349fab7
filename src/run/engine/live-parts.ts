// Parts of a response while it is being streamed, for followers in other processes. The owner publishes text and reasoning in
// batches, a few times a second and without syncing; a follower shows them and continues with the recorded response. A follower
// whose text differs from the beginning of the response, because its owner died and the model was called again, starts over.
import { LazarusError } from "../../platform/errors.ts";
import { decodeValue, encodeRecord } from "../log/codec.ts";
import type { Json } from "../model/types.ts";
import type { LiveRun } from "./live-run.ts";
import { compactParts, type StreamPart } from "./response.ts";

/** How often parts are published. A shorter response costs nothing. */
const PUBLISH_MS = 100;
/** Text before a batch that is searched for secrets together with it. */
const WINDOW = 2000;

const placeOf = (run: LiveRun, step: number, position: number) => `run ${run.id}, part ${step}.${position}`;

const PUBLISHED: ReadonlySet<string> = new Set([
  ...["stream-start", "response-metadata", "text-start", "text-delta", "text-end"],
  ...["reasoning-start", "reasoning-delta", "reasoning-end"],
]);

/** Publishes the parts of one response. */
export class PartPublisher {
  readonly #run: LiveRun;
  readonly #step: number;
  #waiting: StreamPart[] = [];
  #position = 0;
  #before = "";
  #isOpen = true;
  #lastMs: number;
  #writing: Promise<void> | undefined;

  constructor(run: LiveRun, step: number) {
    this.#run = run;
    this.#step = step;
    this.#lastMs = run.log.machine.clock.monotonicMs();
  }

  /** Never waits: what cannot be written in time is written with the next batch. */
  add(part: StreamPart): void {
    if (!this.#isOpen) return;
    // Calls and files are seen with the whole response.
    if (!PUBLISHED.has(part.type)) {
      this.#isOpen = false;
      return;
    }
    this.#waiting.push(part);
    const nowMs = this.#run.log.machine.clock.monotonicMs();
    if (this.#writing !== undefined || nowMs - this.#lastMs < PUBLISH_MS) return;
    this.#lastMs = nowMs;
    this.#writing = this.#publish()
      .catch(() => {
        // Followers get the whole response instead.
        this.#isOpen = false;
      })
      .finally(() => {
        this.#writing = undefined;
      });
  }

  /** Ends the publication before the response is recorded, which removes the parts. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#writing;
  }

  async #publish(): Promise<void> {
    const { log, recorder } = this.#run;
    const { ready, rest } = cutAtWord(compactParts(this.#waiting));
    if (ready.length === 0) return;
    this.#waiting = rest;
    const text = this.#before + ready.map(({ delta }) => (typeof delta === "string" ? delta : "")).join("");
    // A secret that is spread over batches, or that only the text before it reveals, is not published.
    const { redactions } = await log.seal.seal(placeOf(this.#run, this.#step, this.#position), text);
    if (redactions > 0 || text.includes("-----BEGIN")) {
      this.#isOpen = false;
      return;
    }
    this.#before = text.slice(-WINDOW);
    const place = placeOf(this.#run, this.#step, this.#position);
    const sealed = await log.seal.seal(place, encodeRecord(ready, "part"));
    const { runId, epoch } = recorder!.lease;
    if (!this.#isOpen) return;
    if (!(await log.journal.putParts(runId, epoch, this.#step, this.#position, [sealed.text])))
      this.#isOpen = false;
    this.#position += 1;
  }
}

/** Holds the last word back: half a secret would not be recognized. Pure. */
export function cutAtWord(parts: readonly StreamPart[]): { ready: StreamPart[]; rest: StreamPart[] } {
  const last = parts.at(-1);
  if (last === undefined || typeof last.delta !== "string") return { ready: [...parts], rest: [] };
  const end = last.delta.search(/\s\S*$/) + 1;
  const before = parts.slice(0, -1);
  if (end === 0) return { ready: before, rest: [last] };
  const rest = end === last.delta.length ? [] : [{ ...last, delta: last.delta.slice(end) }];
  return { ready: [...before, { ...last, delta: last.delta.slice(0, end) }], rest };
}

/** Reads published parts of a step, from a position on. */
export async function readLiveParts(
  run: LiveRun,
  step: number,
  from: number,
): Promise<{ epoch: number; batches: StreamPart[][] } | undefined> {
  const { epoch, parts } = await run.log.journal.readParts(run.id, step, from);
  if (parts.length === 0) return undefined;
  const batches = parts.map((text, i) => {
    const opened = run.log.seal.open(placeOf(run, step, from + i), text) as Json;
    return decodeValue(opened) as StreamPart[];
  });
  return { epoch, batches };
}

/** What is left of a response after the parts that were shown; undefined when it does not begin with them. Pure. */
export function remainder(
  response: readonly StreamPart[],
  shown: readonly StreamPart[],
): readonly StreamPart[] | undefined {
  const seen = compactParts(shown);
  for (const [i, part] of seen.entries()) {
    const whole = response[i];
    if (whole === undefined) return undefined;
    if (isEqual(part, whole)) continue;
    const isLast = i === seen.length - 1;
    const { delta: known, ...head } = part;
    const { delta: all, ...other } = whole;
    if (!isLast || typeof known !== "string" || typeof all !== "string") return undefined;
    if (!all.startsWith(known) || !isEqual(head as StreamPart, other as StreamPart)) return undefined;
    return [{ ...whole, delta: all.slice(known.length) }, ...response.slice(i + 1)];
  }
  return response.slice(seen.length);
}

function isEqual(a: StreamPart, b: StreamPart): boolean {
  return JSON.stringify(encodeRecord(a)) === JSON.stringify(encodeRecord(b));
}

/** The error of a follower that has shown text other than the beginning of the response. */
export function restarted(run: LiveRun, step: number): LazarusError {
  return new LazarusError(
    "RUN_RESTARTED",
    `step ${step} of run ${run.id} was started over by another process, with different text`,
    { hint: "follow it from its beginning, under the same message id" },
  );
}
