// What the effect history says about a mission, for the hand-off and for status. A history that cannot be read is a fact,
// not a failure: the agent is revived and told so. Read-only.

import { openHistory } from "../effects/history.ts";
import { doneSince, type EffectNote, unknownEffects } from "../effects/notes.ts";
import { formatCount } from "../platform/count.ts";
import type { Machine } from "../platform/machine.ts";
import { describeError } from "./describe.ts";

export interface EffectFacts {
  readonly doneSince: readonly EffectNote[];
  readonly unknown: readonly EffectNote[];
  readonly historyProblem: string | null;
}

export function readEffectFacts(machine: Machine, cellRoot: string): EffectFacts {
  try {
    const history = openHistory(machine, cellRoot);
    const fold = history.read();
    const { damaged } = fold;
    const problem = `${formatCount(damaged, "line")} of ${history.file} cannot be read`;
    return {
      doneSince: doneSince(fold),
      unknown: unknownEffects(fold),
      historyProblem: damaged === 0 ? null : problem,
    };
  } catch (error) {
    return { doneSince: [], unknown: [], historyProblem: describeError(error) };
  }
}
