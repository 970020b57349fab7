// What `lazarus doctor` says about the CLIs of agents on this machine: installed hooks, prompts that keep hooks from running,
// and versions newer than those that were tested. A version comes from the package's own manifest; only Codex is run, to ask
// whether it trusts the hooks of a run.
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Adapter } from "../../../agents/adapter.ts";
import { BUILT_IN } from "../../../agents/adapters.ts";
import { installedHooks } from "../../../agents/install.ts";
import { quietly } from "../../../platform/errors.ts";
import { readJsonFile } from "../../../platform/json-file.ts";
import type { CliContext } from "../../context.ts";
import { askCodexTrust } from "./codex-trust.ts";
import type { Finding } from "./examine.ts";
import { lacksHooks, targetOf } from "./install-target.ts";

export async function examineAgents(context: CliContext): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const adapter of BUILT_IN) {
    const found = findInstalled(adapter, context.surroundings.env.PATH ?? "");
    const hooks = installedHooks(targetOf(context, adapter));
    if (found === undefined && hooks.length === 0) continue;
    findings.push(examineAgent(context, adapter, found?.version, hooks));
    if (found !== undefined && adapter.name === "codex")
      findings.push(await examineTrust(context, adapter, found.program));
  }
  return findings;
}

function examineAgent(
  context: CliContext,
  adapter: Adapter,
  version: string | undefined,
  hooks: readonly string[],
): Finding {
  const finding = describe(adapter, version, hooks);
  if (finding.hint !== null || version === undefined || !lacksHooks(context, adapter)) return finding;
  const note = `${finding.note}; its hooks are not installed, so Lazarus cannot tell which call was cut off`;
  return { ...finding, note, hint: `lazarus install ${adapter.name}` };
}

async function examineTrust(context: CliContext, adapter: Adapter, program: string): Promise<Finding> {
  const { config, surroundings } = context;
  const { command, place } = targetOf(context, adapter);
  const { args } = adapter.hooks.perRun!(command, config.config.run_dir, place.env);
  const check = `hooks of ${adapter.name}`;
  const trust = await askCodexTrust(program, args, surroundings.env);
  if (trust === "trusted")
    return { check, status: "ok", note: "it trusts those that lazarus run passes", hint: null };
  const note =
    trust === null
      ? "it did not say whether it trusts those that lazarus run passes"
      : "it does not trust those that lazarus run passes, so it does not run them: only its transcript shows which call was cut off";
  return {
    check,
    status: "warning",
    note,
    hint: "update Lazarus; lazarus status says if the hooks of a mission do not run",
  };
}

function describe(adapter: Adapter, version: string | undefined, hooks: readonly string[]): Finding {
  const check = `agent ${adapter.name}`;
  const parts = [version ?? "not on PATH"];
  if (hooks.length > 0) parts.push(`hooks installed in ${hooks.join(", ")}`);
  if (version !== undefined && isNewer(version, adapter.testedVersion))
    return {
      check,
      status: "warning",
      note: `${parts.join("; ")}; newer than ${adapter.testedVersion}, the newest version that was tested`,
      hint: `if its conversation is not resumed: lazarus why MISSION, then declare agents.${adapter.name} in the config`,
    };
  if (adapter.name === "codex" && hooks.length > 0)
    return {
      check,
      status: "ok",
      note: `${parts.join("; ")}; they run only once you trust them`,
      hint: "start codex once and accept the hooks",
    };
  return { check, status: "ok", note: parts.join("; "), hint: null };
}

/** The version is from the package.json above the program on PATH; undefined when there is none of the agent's packages. */
function findInstalled(
  { programs, packages }: Adapter,
  path: string,
): { readonly program: string; readonly version: string } | undefined {
  for (const directory of path.split(":").filter((each) => each.startsWith("/"))) {
    for (const name of programs) {
      const program = join(directory, name);
      const version = versionAbove(program, packages);
      if (version !== undefined) return { program, version };
    }
  }
  return undefined;
}

function versionAbove(program: string, packages: readonly string[]): string | undefined {
  const start = dirname(quietly(() => realpathSync(program)) ?? "/");
  for (let directory = start; directory !== "/"; directory = dirname(directory)) {
    const reading = readJsonFile(join(directory, "package.json"));
    if (!reading.ok) continue;
    const { name, version } = reading.value;
    if (typeof name === "string" && packages.includes(name) && typeof version === "string") return version;
  }
  return undefined;
}

export function isNewer(version: string, than: string): boolean {
  const numbers = (text: string) => (text.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  const [left, right] = [numbers(version), numbers(than)];
  const at = left.findIndex((number, index) => number !== (right[index] ?? 0));
  return at !== -1 && left[at]! > (right[at] ?? 0);
}
