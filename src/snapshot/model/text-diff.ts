// Unified diffs of two texts, by Myers' greedy algorithm. Bounded: texts that differ in very many places are shown as
// one replaced block, which is right if not small. Pure.

/** More differences than this are not worth finding a shortest script for: memory grows with their square. */
const MAX_EDITS = 1000;
const CONTEXT_LINES = 3;

interface Span {
  /** Lines of the old text that go, and of the new that come, at these places. */
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly newStart: number;
  readonly newEnd: number;
}

/** The body of a unified diff: hunks with their `@@` heads; "" when the texts are the same. */
export function unifiedDiff(before: string, after: string): string {
  const a = splitLines(before);
  const b = splitLines(after);
  const hunks = groupSpans(findSpans(a, b), a.length);
  return hunks.map((spans) => formatHunk(spans, a, b)).join("");
}

/** Lines with their endings, so that a missing newline at the end is a difference. */
function splitLines(text: string): string[] {
  return text === "" ? [] : text.split(/(?<=\n)/);
}

export function findSpans(a: readonly string[], b: readonly string[]): Span[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  if (start === endA && start === endB) return [];
  const whole: Span = { oldStart: start, oldEnd: endA, newStart: start, newEnd: endB };
  if (start === endA || start === endB) return [whole];
  return myers(a.slice(start, endA), b.slice(start, endB), start) ?? [whole];
}

/** The shortest edit script as spans; undefined when it takes more than MAX_EDITS. */
function myers(a: readonly string[], b: readonly string[], offset: number): Span[] | undefined {
  const trace: Int32Array[] = [];
  const limit = Math.min(MAX_EDITS, a.length + b.length);
  const middle = limit + 1;
  const furthest = new Int32Array(2 * limit + 3);
  for (let edits = 0; edits <= limit; edits += 1) {
    trace.push(furthest.slice(middle - edits - 1, middle + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && furthest[middle + k - 1]! < furthest[middle + k + 1]!);
      let x = down ? furthest[middle + k + 1]! : furthest[middle + k - 1]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      furthest[middle + k] = x;
      if (x >= a.length && y >= b.length) return walkBack(trace, edits, a.length, b.length, offset);
    }
  }
  return undefined;
}

function walkBack(
  trace: readonly Int32Array[],
  edits: number,
  endX: number,
  endY: number,
  offset: number,
): Span[] {
  const steps: Span[] = [];
  let x = endX;
  let y = endY;
  for (let d = edits; d > 0; d -= 1) {
    const row = trace[d]!;
    const at = (k: number) => row[k + d + 1]!;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = at(fromK);
    const fromY = fromX - fromK;
    const [toX, toY] = down ? [fromX, fromY + 1] : [fromX + 1, fromY];
    steps.push({
      oldStart: fromX + offset,
      oldEnd: toX + offset,
      newStart: fromY + offset,
      newEnd: toY + offset,
    });
    x = fromX;
    y = fromY;
  }
  return joinSpans(steps.reverse());
}

/** Neighbouring single edits become one span. */
function joinSpans(steps: readonly Span[]): Span[] {
  const spans: Span[] = [];
  for (const step of steps) {
    const last = spans.at(-1);
    if (last !== undefined && last.oldEnd === step.oldStart && last.newEnd === step.newStart)
      spans[spans.length - 1] = { ...last, oldEnd: step.oldEnd, newEnd: step.newEnd };
    else spans.push(step);
  }
  return spans;
}

/** Spans whose contexts touch share a hunk. */
function groupSpans(spans: readonly Span[], oldLength: number): Span[][] {
  const hunks: Span[][] = [];
  for (const span of spans) {
    const last = hunks.at(-1)?.at(-1);
    if (last !== undefined && span.oldStart - Math.min(last.oldEnd, oldLength) <= 2 * CONTEXT_LINES)
      hunks.at(-1)!.push(span);
    else hunks.push([span]);
  }
  return hunks;
}

function formatHunk(spans: readonly Span[], a: readonly string[], b: readonly string[]): string {
  const first = spans[0]!;
  const last = spans.at(-1)!;
  const lead = Math.min(CONTEXT_LINES, first.oldStart);
  const trail = Math.min(CONTEXT_LINES, a.length - last.oldEnd);
  const oldStart = first.oldStart - lead;
  const newStart = first.newStart - lead;
  const oldCount = last.oldEnd + trail - oldStart;
  const newCount = last.newEnd + trail - newStart;
  let text = `@@ -${range(oldStart, oldCount)} +${range(newStart, newCount)} @@\n`;
  let at = oldStart;
  for (const span of spans) {
    for (const line of a.slice(at, span.oldStart)) text += mark(" ", line);
    for (const line of a.slice(span.oldStart, span.oldEnd)) text += mark("-", line);
    for (const line of b.slice(span.newStart, span.newEnd)) text += mark("+", line);
    at = span.oldEnd;
  }
  for (const line of a.slice(at, last.oldEnd + trail)) text += mark(" ", line);
  return text;
}

function range(start: number, count: number): string {
  // An empty range is named by the line before it.
  return count === 1 ? `${start + 1}` : `${count === 0 ? start : start + 1},${count}`;
}

function mark(sign: string, line: string): string {
  return line.endsWith("\n") ? `${sign}${line}` : `${sign}${line}\n\\ No newline at end of file\n`;
}
