// What `lazarus doctor` says about the CLIs of agents on this machine: installed hooks, prompts that keep hooks from running,
// and versions newer than those that were tested. Runs none of them: a version comes from the package's own manifest.
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Adapter } from "../../../agents/adapter.ts";
import { BUILT_IN } from "../../../agents/adapters.ts";
import { installedHooks } from "../../../agents/install.ts";
import { readJsonFile } from "../../../platform/json-file.ts";
import type { CliContext } from "../../context.ts";
import type { Finding } from "./examine.ts";
import { lacksHooks, targetOf } from "./install-target.ts";

export function examineAgents(context: CliContext): Finding[] {
  return BUILT_IN.flatMap((adapter) => {
    const version = installedVersion(adapter, context.surroundings.env.PATH ?? "");
    const hooks = installedHooks(targetOf(context, adapter));
    if (version === undefined && hooks.length === 0) return [];
    const finding = describe(adapter, version, hooks);
    if (finding.hint !== null || version === undefined || !lacksHooks(context, adapter)) return [finding];
    const note = `${finding.note}; its hooks are not installed, so Lazarus cannot tell which call was cut off`;
    return [{ ...finding, note, hint: `lazarus install ${adapter.name}` }];
  });
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

/** From the package.json above the program on PATH; undefined when there is none of the agent's packages. */
function installedVersion({ programs, packages }: Adapter, path: string): string | undefined {
  for (const directory of path.split(":").filter((each) => each.startsWith("/"))) {
    for (const program of programs) {
      const version = versionAbove(join(directory, program), packages);
      if (version !== undefined) return version;
    }
  }
  return undefined;
}

function versionAbove(program: string, packages: readonly string[]): string | undefined {
  let directory: string;
  try {
    directory = dirname(realpathSync(program));
  } catch {
    return undefined;
  }
  for (; directory !== "/"; directory = dirname(directory)) {
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
