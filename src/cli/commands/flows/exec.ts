import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { selfOwner } from "../../../flow/locking/owner.ts";
import { execPlan } from "../../../flow/operations/exec.ts";
import { type PlanStep, parsePlan } from "../../../flow/operations/plan.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { defineCommand } from "../../command.ts";
import { ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Runs the steps of a YAML file in order, each at most once. After an interruption, running it again continues where " +
    "it stopped. A failed step is run again by the next exec. A step whose outcome is unknown stops it with exit code 4, " +
    "unless it declares `retry: safe`. If a step fails, its exit code is returned. The file has `workflow` and `steps`, " +
    "optionally `agent`, `idempotency` (default: the id of the workflow; a new key starts a new run) and `ttlDays`. Each " +
    "step has `key` and `run`, optionally `retry`, `cwd` (relative to the file) and `env`.",
  positionals: [{ name: "file", summary: "YAML file with the steps" }],
  options: {
    idempotency: { type: "text", value: "KEY", summary: "idempotency key; overrides the one in the file" },
    "retry-unknown": {
      type: "texts",
      value: "STEP",
      summary: "run this step again although its outcome is unknown; may be repeated",
    },
    ...ROOT_OPTION,
  },
  examples: [
    [
      "printf 'workflow: greet\\nsteps:\\n  - key: hello\\n    run: echo hello\\n' > greet.yaml && lazarus flow exec greet.yaml",
      "write a file and run it",
    ],
    ['lazarus flow exec nightly.yaml --idempotency "nightly-$(date +%F)"', "one run per day, from cron"],
  ],
  exits: [
    "unknown-outcome",
    "missing",
    "conflict",
    "damaged",
    "machine",
    "busy",
    "unsupported",
    "interrupted",
  ],
  async run(context, { args, options }) {
    const file = resolve(context.surroundings.cwd, args.file);
    const plan = await parsePlan(readPlan(file), args.file);
    const { terminal } = context;
    const showOutput = !context.globals.json;
    const steps: { key: string; how: string; exitCode: number | null }[] = [];
    const onStep = (step: PlanStep, how: string, exitCode?: number) => {
      if (how !== "running") steps.push({ key: step.key, how, exitCode: exitCode ?? null });
      const ending = exitCode === undefined || exitCode === 0 ? "" : `, exit code ${exitCode}`;
      if (how === "running") context.say(`${shown(step.key)} …`);
      else if (how === "skipped") context.say(`${shown(step.key)}: already done`);
      else if (how === "replayed") context.say(`${shown(step.key)}: already ended${ending}`);
      else context.say(`${shown(step.key)}: ${exitCode === 0 ? "done" : `failed${ending}`}`);
    };
    const result = await execPlan(workspaceOf(context, options), {
      plan: { ...plan, idempotency: options.idempotency ?? plan.idempotency },
      cwd: dirname(file),
      env: context.surroundings.env,
      me: selfOwner(context.machine.processes),
      retryUnknown: options["retry-unknown"],
      onStep,
      ...(showOutput
        ? {
            onStdout: (chunk: Buffer) => terminal.out(chunk),
            onStderr: (chunk: Buffer) => terminal.err(chunk),
          }
        : {}),
      signal: context.signal,
    });
    context.emit("flow-exec/1", { workflow: plan.workflow, ...result, steps }, () => "");
    if (result.outcome === "failed") {
      context.warn(
        `${plan.workflow} stopped at ${shown(result.step)}; run the same command again to continue`,
      );
    } else context.say(`${plan.workflow}: ${result.outcome === "done" ? "done" : "already done"}`);
    return result.exitCode;
  },
});

function readPlan(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "EISDIR") {
      throw new LazarusError("NOT_FOUND", `${file} is a directory, not a list of steps`, {
        hint: `ls ${shellWord(file)}`,
      });
    }
    throw asLazarusError(error, `reading ${file}`, shellWord(dirname(file)));
  }
}
