// The options shared by `pit install` and `pit uninstall`.
import { resolve } from "node:path";
import { LazarusError } from "../../../platform/errors.ts";
import { type PitUnitRequest, SCHEDULERS, type Scheduler } from "../../../service/unit.ts";
import type { OptionSpec, PositionalSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";

export const UNIT_OPTIONS = {
  user: { type: "flag", summary: "for this user (default unless root)" },
  system: { type: "flag", summary: "for the whole machine (default for root)" },
  "run-as": {
    type: "text",
    value: "USER",
    summary: "with --system: run the pit as this user (default root)",
  },
  "dry-run": { type: "flag", summary: "print what would be done, do nothing" },
} as const satisfies Record<string, OptionSpec>;

export const UNIT_POSITIONALS = [
  { name: "scheduler", summary: SCHEDULERS.join(", ") },
] as const satisfies readonly PositionalSpec[];

interface UnitValues {
  readonly user: boolean;
  readonly system: boolean;
  readonly "run-as": string | undefined;
}

export function unitRequestOf(
  context: CliContext,
  name: string,
  scheduler: string,
  options: UnitValues,
): PitUnitRequest {
  const { env, isRoot, cwd } = context.surroundings;
  if (!(SCHEDULERS as readonly string[]).includes(scheduler))
    throw usage(name, `${JSON.stringify(scheduler)} is not one of ${SCHEDULERS.join(", ")}`);
  if (options.user && options.system) throw usage(name, "--user and --system cannot be combined");
  const scope = options.system || (isRoot && !options.user) ? "system" : "user";
  if (options["run-as"] !== undefined && scope === "user") throw usage(name, "--run-as requires --system");
  if (options["run-as"] !== undefined && !/^[a-z_][a-z0-9_-]*\$?$/i.test(options["run-as"]))
    throw usage(name, `${JSON.stringify(options["run-as"])} is not a user name`);
  if (scope === "system" && !isRoot && scheduler !== "cron") {
    throw new LazarusError("PERMISSION", "installing a system service requires root", {
      hint: `sudo lazarus ${name} ${scheduler} --system --run-as ${env.USER ?? "USER"}, or: lazarus ${name} ${scheduler} --user`,
    });
  }
  if (!env.HOME && scope === "user")
    throw usage(name, "HOME is not set, so a user service cannot be installed");
  const configFile = context.globals.config ?? env.LAZARUS_CONFIG;
  return {
    scheduler: scheduler as Scheduler,
    scope,
    program: [process.execPath, ...(process.argv[1] === undefined ? [] : [resolve(process.argv[1])])],
    home: env.HOME ?? "/",
    configHome: env.XDG_CONFIG_HOME || undefined,
    lazarusHome: env.LAZARUS_HOME ? resolve(cwd, env.LAZARUS_HOME) : undefined,
    configFile: configFile ? resolve(cwd, configFile) : undefined,
    searchPath: env.PATH,
    runAs: options["run-as"],
  };
}

export const UNIT_REPORT = { schema: "pit-install/1", undo: "lazarus pit uninstall" } as const;
