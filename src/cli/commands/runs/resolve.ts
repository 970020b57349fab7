import { LazarusError } from "../../../platform/errors.ts";
import { parseEffectId } from "../../../run/model/ledger.ts";
import type { Json } from "../../../run/model/types.ts";
import type { EffectResolution } from "../../../run/store/store.ts";
import { usage } from "../../parse.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";
import { sameStore } from "./same-store.ts";

export const command = defineRunsCommand({
  about:
    "Records the outcome of an effect that was interrupted. --done: it happened. --retry: it did not happen, do it again. " +
    "--fail: it did not happen, report that to the model. When no effect of the run is unknown, the run can be resumed.",
  positionals: [{ name: "effect", summary: "id of the effect, as `lazarus runs show` prints it" }],
  options: {
    ...STORE_OPTIONS,
    done: { type: "flag", summary: "it happened" },
    retry: { type: "flag", summary: "it did not happen; do it on the next resume" },
    fail: { type: "flag", summary: "it did not happen; report that to the model" },
    output: { type: "text", value: "JSON", summary: "with --done: the result of the tool" },
    reason: { type: "text", value: "TEXT", summary: "with --fail: the reason given to the model" },
  },
  examples: [
    ["lazarus runs resolve 20261115-235301-x7k2p9.4.0 --done", "the mail was sent"],
    ["lazarus runs resolve 20261115-235301-x7k2p9.4.0 --retry", "the mail was not sent; send it"],
  ],
  exits: ["missing", "conflict", "busy", "machine"],
  async run(context, { args, options }) {
    const resolution = choose(options);
    const place = parseEffectId(args.effect);
    if (place === undefined) {
      throw new LazarusError("EFFECT_UNKNOWN", `${JSON.stringify(args.effect)} is not the id of an effect`, {
        hint: "lazarus runs show <run>, to list them: <run>.<step>.<call>",
      });
    }
    const { store, runId } = await findRun(context, options, place.runId);
    await using opened = store;
    const effect = await opened.resolve(`${runId}.${place.step}.${place.call}`, resolution);
    const head = (await opened.head(runId))!;
    context.emit("effect/1", { effect, run_status: head.status }, () => `${effect.id} ${effect.state}\n`);
    if (head.status === "running") context.say(`run ${runId} can be resumed: start its host again`);
    else if (head.status === "needs-human")
      context.say(`run ${runId} still needs a human: lazarus runs show ${runId}${sameStore(options)}`);
    return 0;
  },
});

interface Choice {
  readonly done: boolean;
  readonly retry: boolean;
  readonly fail: boolean;
  readonly output: string | undefined;
  readonly reason: string | undefined;
}

function choose({ done, retry, fail, output, reason }: Choice): EffectResolution {
  const wrong = (message: string) => usage("runs resolve", message);
  if ([done, retry, fail].filter(Boolean).length !== 1)
    throw wrong("give exactly one of --done, --retry, --fail");
  if (output !== undefined && !done) throw wrong("--output requires --done");
  if (reason !== undefined && !fail) throw wrong("--reason requires --fail");
  if (retry) return { outcome: "retry" };
  if (fail) return { outcome: "fail", ...(reason === undefined ? {} : { reason }) };
  if (output === undefined) return { outcome: "done" };
  try {
    return { outcome: "done", output: JSON.parse(output) as Json };
  } catch {
    throw wrong(`--output is not JSON: ${JSON.stringify(output.slice(0, 80))}`);
  }
}
