// A task's result on its way from a worker: what was captured as columns of numbers and one string of digests, not as
// objects. Structured cloning repeats the name of every property: for 133,000 paths it took a tenth of the CPU time of a
// checkpoint. The receiver knows path, type and group from the task. Pure.
import type { CapturedItem, CaptureItem, CaptureTask, TaskResult } from "../model/capture-item.ts";
import type { Described } from "./describe-path.ts";

export interface TaskReply extends Omit<TaskResult, "captured"> {
  /** So many numbers per captured item, see `encodeNumbers`. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** The digests of the captured files, end to end. */
  readonly digests: string;
  /** What few items have, by position. */
  readonly details: readonly (readonly [position: number, details: Details])[];
}

interface Details {
  readonly entry: Pick<CapturedItem["entry"], "target" | "xattrs" | "extents">;
  readonly item: Pick<CapturedItem, "torn" | "degraded">;
}

const COLUMNS = 12;
const DIGEST_LENGTH = 64;
/** In place of `at` and `stored` where there are no bytes. */
const NONE = -1;

export function encodeReply({ captured, ...rest }: TaskResult, task: CaptureTask): TaskReply {
  const items = itemsOf(task);
  const numbers = new Float64Array(captured.length * COLUMNS);
  const details: (readonly [number, Details])[] = [];
  let digests = "";
  let index = 0;
  for (const [position, item] of captured.entries()) {
    const { entry } = item;
    while (items[index]!.path !== entry.path) index += 1;
    encodeNumbers(numbers, position * COLUMNS, index, item);
    if (entry.type === "file") digests += entry.sha256;
    const rare = detailsOf(item);
    if (rare !== undefined) details.push([position, rare]);
    index += 1;
  }
  return { ...rest, numbers, digests, details };
}

export function decodeReply(
  { numbers, digests, details, ...rest }: TaskReply,
  task: CaptureTask,
): TaskResult {
  const items = itemsOf(task);
  const captured: Described[] = [];
  let digestsUsed = 0;
  for (let at = 0; at < numbers.length; at += COLUMNS) {
    const item = items[numbers[at]!]!;
    const end = item.type === "file" ? digestsUsed + DIGEST_LENGTH : digestsUsed;
    captured.push(decodeItem(numbers, at, item, digests.slice(digestsUsed, end)));
    digestsUsed = end;
  }
  for (const [position, { entry, item }] of details) {
    const target = captured[position]!;
    Object.assign(target.entry, entry);
    Object.assign(target, item);
  }
  return { ...rest, captured };
}

function itemsOf(task: CaptureTask): readonly CaptureItem[] {
  if (task.kind === "piece") return [];
  return task.kind === "tail" ? [task.item] : task.items;
}

function encodeNumbers(into: Float64Array, at: number, index: number, item: CapturedItem): void {
  const { entry, mark } = item;
  into[at] = index;
  into[at + 1] = entry.mode;
  into[at + 2] = entry.uid;
  into[at + 3] = entry.gid;
  into[at + 4] = entry.mtimeSec;
  into[at + 5] = entry.mtimeNs;
  into[at + 6] = entry.size;
  into[at + 7] = mark.ctimeMs;
  into[at + 8] = mark.ino;
  into[at + 9] = mark.nlink;
  into[at + 10] = item.at ?? NONE;
  into[at + 11] = item.stored ?? NONE;
}

function decodeItem(numbers: Float64Array, start: number, item: CaptureItem, sha256: string): Described {
  const number = (column: number) => compact(numbers[start + column]!);
  const described: Described = {
    entry: {
      path: item.path,
      type: item.type,
      mode: number(1),
      uid: number(2),
      gid: number(3),
      mtimeSec: number(4),
      mtimeNs: number(5),
      size: number(6),
      sha256,
    },
    mark: { ctimeMs: numbers[start + 7]!, ino: number(8), nlink: number(9) },
  };
  if (item.group !== undefined) described.entry.group = item.group;
  const at = number(10);
  if (at !== NONE) {
    described.at = at;
    described.stored = number(11);
  }
  return described;
}

/** The same number, as a small integer if possible, which needs no heap object. */
function compact(value: number): number {
  const small = value | 0;
  return small === value ? small : value;
}

function detailsOf({ entry, torn, degraded }: CapturedItem): Details | undefined {
  const { target, xattrs, extents } = entry;
  if ((target ?? xattrs ?? extents ?? torn ?? degraded) === undefined) return undefined;
  return {
    entry: {
      ...(target !== undefined && { target }),
      ...(xattrs !== undefined && { xattrs }),
      ...(extents !== undefined && { extents }),
    },
    item: { ...(torn !== undefined && { torn }), ...(degraded !== undefined && { degraded }) },
  };
}
