// A plan: a list of shell steps in YAML, checked before anything runs. Each step has a unique key and declares whether
// running it again is safe. Pure, except for the lazy import of the YAML parser.
import { LazarusError, messageOf } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import { isFlowId } from "../document/id.ts";

/** One command of a plan. */
export interface PlanStep {
  readonly key: string;
  /** A line for /bin/sh. */
  readonly run: string;
  /** `safe`: running it twice does no harm, so it is run again after an unknown outcome. */
  readonly retry: "safe" | "never";
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** A list of commands to execute as a flow. */
export interface Plan {
  readonly workflow: string;
  readonly agent: string;
  readonly idempotency: string;
  readonly ttlDays: number | undefined;
  readonly steps: readonly PlanStep[];
}

const PLAN_KEYS = new Set(["workflow", "agent", "idempotency", "ttlDays", "steps"]);
const STEP_KEYS = new Set(["key", "run", "retry", "cwd", "env"]);
const MAX_STEPS = 10_000;
/** A flow file is at most 1 MB, and its plan is not much longer. Parsing 100 MB of YAML would take a minute. */
const PLAN_LIMIT_BYTES = 4 * 1024 * 1024;

/** Parses and validates a plan in JSON or YAML. */
export async function parsePlan(text: string, file: string): Promise<Plan> {
  if (text.length > PLAN_LIMIT_BYTES) {
    throw invalid(file, `has ${text.length} characters, more than the limit of ${PLAN_LIMIT_BYTES}`);
  }
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { uniqueKeys: true, prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw invalid(file, error.message.split("\n")[0] ?? "not YAML");
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw invalid(file, messageOf(cause));
  }
  return checkPlan(value, file);
}

/** Validates a plan. Throws for the first mistake. */
export function checkPlan(value: unknown, file: string): Plan {
  if (!isJsonObject(value)) throw invalid(file, "expected a mapping with workflow and steps");
  requireKnown(value, PLAN_KEYS, file, "");
  const { workflow, agent = "exec", idempotency = workflow, ttlDays, steps } = value;
  if (typeof workflow !== "string" || !isFlowId(workflow)) {
    throw invalid(file, "workflow is missing or not a valid id (letters, digits, '.', '_', '-')");
  }
  if (typeof agent !== "string" || !isFlowId(agent)) throw invalid(file, "agent is not a valid id");
  if (typeof idempotency !== "string" || idempotency === "")
    throw invalid(file, "idempotency is not a string");
  if (ttlDays !== undefined && !(typeof ttlDays === "number" && ttlDays > 0)) {
    throw invalid(file, "ttlDays is not a positive number");
  }
  if (!Array.isArray(steps) || steps.length === 0) throw invalid(file, "steps is missing or empty");
  if (steps.length > MAX_STEPS) throw invalid(file, `more than ${MAX_STEPS} steps`);
  const seen = new Set<string>();
  const checked = steps.map((step, i) => checkStep(step, `steps[${i}]`, file, seen));
  return { workflow, agent, idempotency, ttlDays: ttlDays as number | undefined, steps: checked };
}

function checkStep(step: unknown, at: string, file: string, seen: Set<string>): PlanStep {
  if (!isJsonObject(step)) throw invalid(file, `${at}: expected a mapping with key and run`);
  requireKnown(step, STEP_KEYS, file, `${at}: `);
  const { key, run, retry = "never", cwd, env = {} } = step;
  if (!isLine(key) || key === "" || key.length > 200) {
    throw invalid(file, `${at}.key is missing or not a string of at most 200 characters`);
  }
  if (seen.has(key)) throw invalid(file, `${at}.key ${JSON.stringify(key)} is used twice`);
  seen.add(key);
  if (!isLine(run) || run.trim() === "") throw invalid(file, `${at}.run is missing or not a string`);
  if (retry !== "safe" && retry !== "never") throw invalid(file, `${at}.retry is neither "safe" nor "never"`);
  if (cwd !== undefined && !isLine(cwd)) throw invalid(file, `${at}.cwd is not a string`);
  if (!isJsonObject(env)) throw invalid(file, `${at}.env is not a mapping`);
  const texts = Object.entries(env).map(([name, text]) => {
    if (!/^[^=\0]+$/.test(name))
      throw invalid(file, `${at}.env: ${JSON.stringify(name)} is not a variable name`);
    if (typeof text === "object" || !isLine(String(text)))
      throw invalid(file, `${at}.env.${name} is not a string`);
    return [name, String(text)] as const;
  });
  return { key, run, retry, cwd, env: Object.fromEntries(texts) };
}

/** A string without NUL, which can be passed to a process. */
function isLine(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

function requireKnown(value: object, known: ReadonlySet<string>, file: string, at: string): void {
  const unknown = Object.keys(value).find((key) => !known.has(key));
  if (unknown === undefined) return;
  throw invalid(
    file,
    `${at}unknown key ${JSON.stringify(unknown)}; expected one of ${[...known].join(", ")}`,
  );
}

function invalid(file: string, reason: string): LazarusError {
  return new LazarusError("FLOW_PLAN_INVALID", `${file}: ${reason}; nothing was run`, {
    hint: "lazarus flow exec --help, for a complete example",
    details: { file },
  });
}
