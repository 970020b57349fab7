// A list of shell steps in YAML, checked before anything runs: each step has a key of its own, and says itself whether
// running it again is safe. Pure but for the lazy import of the YAML parser.
import { LazarusError } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import { isFlowId } from "../document/id.ts";

export interface PlanStep {
  readonly key: string;
  /** A line for /bin/sh. */
  readonly run: string;
  /** `safe`: running it twice does no harm, so an unknown outcome is simply run again. */
  readonly retry: "safe" | "never";
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

export interface Plan {
  readonly workflow: string;
  readonly agent: string;
  readonly idempotency: string;
  readonly ttlDays: number | undefined;
  readonly steps: readonly PlanStep[];
}

const PLAN_KEYS = new Set(["workflow", "agent", "idempotency", "ttlDays", "steps"]);
const STEP_KEYS = new Set(["key", "run", "retry", "cwd", "env"]);
const MOST_STEPS = 10_000;
/** A flow of more than a megabyte is none, and its plan is not much longer. A parser would work on 100 MB for a minute. */
const PLAN_LIMIT_BYTES = 4 * 1024 * 1024;

export async function parsePlan(text: string, file: string): Promise<Plan> {
  if (text.length > PLAN_LIMIT_BYTES) {
    throw invalid(
      file,
      `has ${text.length} characters, more than the ${PLAN_LIMIT_BYTES} of a list of steps`,
    );
  }
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { uniqueKeys: true, prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw invalid(file, error.message.split("\n")[0] ?? "not YAML");
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw invalid(file, cause instanceof Error ? cause.message : String(cause));
  }
  return checkPlan(value, file);
}

export function checkPlan(value: unknown, file: string): Plan {
  if (!isJsonObject(value)) throw invalid(file, "expected a mapping with workflow and steps");
  requireKnown(value, PLAN_KEYS, file, "");
  const { workflow, agent = "exec", idempotency = workflow, ttlDays, steps } = value;
  if (typeof workflow !== "string" || !isFlowId(workflow)) {
    throw invalid(file, "workflow is missing or no safe id (letters, digits, '.', '_', '-')");
  }
  if (typeof agent !== "string" || !isFlowId(agent)) throw invalid(file, "agent is no safe id");
  if (typeof idempotency !== "string" || idempotency === "") throw invalid(file, "idempotency is not text");
  if (ttlDays !== undefined && !(typeof ttlDays === "number" && ttlDays > 0)) {
    throw invalid(file, "ttlDays is not a number above 0");
  }
  if (!Array.isArray(steps) || steps.length === 0) throw invalid(file, "steps is missing or empty");
  if (steps.length > MOST_STEPS) throw invalid(file, `more than ${MOST_STEPS} steps`);
  const seen = new Set<string>();
  const checked = steps.map((step, i) => checkStep(step, `steps[${i}]`, file, seen));
  return { workflow, agent, idempotency, ttlDays: ttlDays as number | undefined, steps: checked };
}

function checkStep(step: unknown, at: string, file: string, seen: Set<string>): PlanStep {
  if (!isJsonObject(step)) throw invalid(file, `${at}: expected a mapping with key and run`);
  requireKnown(step, STEP_KEYS, file, `${at}.`);
  const { key, run, retry = "never", cwd, env = {} } = step;
  if (!isLine(key) || key === "" || key.length > 200) {
    throw invalid(file, `${at}.key is missing or not a short text`);
  }
  if (seen.has(key)) throw invalid(file, `${at}.key ${JSON.stringify(key)} is used twice`);
  seen.add(key);
  if (!isLine(run) || run.trim() === "") throw invalid(file, `${at}.run is missing or not text`);
  if (retry !== "safe" && retry !== "never") throw invalid(file, `${at}.retry is neither safe nor never`);
  if (cwd !== undefined && !isLine(cwd)) throw invalid(file, `${at}.cwd is not text`);
  if (!isJsonObject(env)) throw invalid(file, `${at}.env is not a mapping`);
  const texts = Object.entries(env).map(([name, text]) => {
    if (!/^[^=\0]+$/.test(name))
      throw invalid(file, `${at}.env: ${JSON.stringify(name)} is no variable's name`);
    if (typeof text === "object" || !isLine(String(text)))
      throw invalid(file, `${at}.env.${name} is not text`);
    return [name, String(text)] as const;
  });
  return { key, run, retry, cwd, env: Object.fromEntries(texts) };
}

/** Text that a process can be given: no byte 0 in it. */
function isLine(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

function requireKnown(value: object, known: ReadonlySet<string>, file: string, at: string): void {
  const stranger = Object.keys(value).find((key) => !known.has(key));
  if (stranger === undefined) return;
  throw invalid(file, `${at}${JSON.stringify(stranger)} is not known; there are ${[...known].join(", ")}`);
}

function invalid(file: string, reason: string): LazarusError {
  return new LazarusError("FLOW_PLAN_INVALID", `${file}: ${reason}; nothing was run`, {
    hint: "lazarus flow exec --help shows a whole file",
    details: { file },
  });
}
