// CPU time of the hooks of one tool call, before and after it: the commands that a run passes to the CLI, called as the CLI does,
// with input as in test/agents/fake. All processes that they start are counted; what a plugin does in the agent's own
// process is not.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findAdapter } from "../../src/agents/adapters.ts";
import type { JsonObject } from "../../src/platform/json-file.ts";
import { installHooks } from "../../test/agents/fake/install.ts";
import type { Hook, Moment, Place, SessionPlace } from "../../test/agents/fake/profile.ts";
import { PROFILES } from "../../test/agents/fake/profiles.ts";
import { createWorld, LAUNCHER } from "../../test/cli/hermetic.ts";

const CALLS = 20;
const MISSION = "book";
/** The unit of times in /proc. */
const TICK_MS = 10;

/** Milliseconds per call. */
export async function hookCpuMs(name: string): Promise<number> {
  using world = createWorld();
  world.run(["init", MISSION]);
  const profile = PROFILES[name]!;
  const { perRun } = findAdapter(name)!.hooks;
  const program = [process.execPath, LAUNCHER];
  const directory = join(world.home, "run", "agents", MISSION, "hooks");
  const setup = perRun!([...program, "hook", name], directory, {});
  for (const { name: file, text } of setup.files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), text);
  }
  const home = world.env.HOME!;
  installHooks(name, home, program);
  const env = {
    ...process.env,
    ...world.env,
    ...setup.installedEnv,
    ...setup.env,
    LAZARUS_MISSION: MISSION,
    LAZARUS_EPOCH: "1",
    LAZARUS_HEARTBEAT: join(world.missions, MISSION, "state", "heartbeat.json"),
  };
  const place: Place = { cwd: world.cwd, home, env };
  const id = profile.newId?.() ?? "0b0c1d2e-1111-4222-8333-444455556666";
  const session = { id, path: join(home, "session.jsonl"), cwd: world.cwd };
  const own = { ...process.env };
  // A plugin runs in this process.
  Object.assign(process.env, env);
  try {
    const hooks = await profile.hooks(setup.args, place);
    const report = (moment: Moment) => {
      for (const { event, input } of profile.events(moment, session))
        for (const hook of hooks[event] ?? []) runHook(hook, input, env, session);
    };
    report({ kind: "session", resumed: false });
    const before = childrenMs();
    for (let index = 0; index < CALLS; index += 1) {
      const call = { id: `call_${index}`, command: "npm test" };
      report({ kind: "before-tool", call });
      report({ kind: "after-tool", call, text: "ok" });
    }
    const spent = childrenMs() - before;
    requireReports(join(dirname(directory), "hooks.jsonl"));
    return spent / CALLS;
  } finally {
    for (const key of Object.keys(process.env)) if (!(key in own)) delete process.env[key];
    Object.assign(process.env, own);
  }
}

function runHook(hook: Hook, input: JsonObject, env: NodeJS.ProcessEnv, session: SessionPlace): void {
  if ("run" in hook) hook.run(input, session);
  else
    spawnSync("/bin/sh", ["-c", hook.command], {
      input: JSON.stringify(input),
      env,
      stdio: ["pipe", "ignore", "inherit"],
    });
}

/** Hooks that fail cost nothing. */
function requireReports(file: string): void {
  const count = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").length : 0;
  if (count < 2 * CALLS) throw new Error(`${file} has ${count} lines after ${CALLS} calls`);
}

/** CPU time of all processes that this one has started and that have ended. */
function childrenMs(): number {
  const [user = "0", system = "0"] = readFileSync("/proc/self/stat", "latin1")
    .split(") ")[1]!
    .split(" ")
    .slice(13, 15);
  return (Number(user) + Number(system)) * TICK_MS;
}
