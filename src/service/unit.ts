// The two services that Lazarus installs, independent of the service manager: the pit, which always runs, and the
// self-check of a workspace's flows, which runs every ten minutes. Pure; systemd.ts, launchd.ts and cron.ts render them.
import { basename } from "node:path";
import { sha256Hex } from "../platform/sha256.ts";

export const SCHEDULERS = ["systemd", "launchd", "cron"] as const;
export type Scheduler = (typeof SCHEDULERS)[number];

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}

export interface ServiceUnit {
  readonly name: string;
  readonly description: string;
  /** Written into every file, so that uninstall removes only files that Lazarus made. */
  readonly mark: string;
  readonly command: readonly string[];
  readonly environment: readonly (readonly [name: string, value: string])[];
  readonly scope: "user" | "system";
  /** For system units: the user to run as. Default root. */
  readonly runAs?: string | undefined;
  readonly home: string;
  readonly configHome?: string | undefined;
  /** `always`: a daemon that speaks sd_notify and is restarted whenever it exits. */
  readonly schedule: "always" | { readonly everyMinutes: number };
  /** Prints the plan without carrying it out. */
  readonly previewCommand: string;
}

export interface PitUnitRequest {
  readonly scheduler: Scheduler;
  readonly scope: "user" | "system";
  /** The program and its first arguments: node and the launcher, by absolute path. */
  readonly program: readonly string[];
  readonly home: string;
  readonly configHome?: string | undefined;
  /** LAZARUS_HOME and --config, when set: they distinguish one pit from another. */
  readonly lazarusHome?: string | undefined;
  readonly configFile?: string | undefined;
  /** The PATH of the installing user, where agents' programs are found. */
  readonly searchPath?: string | undefined;
  readonly runAs?: string | undefined;
}

export const PIT_MARK = "made by lazarus pit install";

export function pitUnit(request: PitUnitRequest): ServiceUnit {
  const { program, configFile, lazarusHome, searchPath, scope, runAs, home, configHome } = request;
  const variables: [string, string | undefined][] = [
    ["PATH", searchPath],
    ["LAZARUS_HOME", lazarusHome],
  ];
  return {
    name: pitUnitName(request),
    description: "Lazarus pit: watches agents and brings them back",
    mark: PIT_MARK,
    command: [...program, "pit", ...(configFile === undefined ? [] : ["--config", configFile])],
    environment: variables.filter(
      (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== "",
    ),
    scope,
    runAs: scope === "system" ? runAs : undefined,
    home,
    configHome,
    schedule: "always",
    previewCommand: "lazarus pit install cron --dry-run",
  };
}

/** Stable for one LAZARUS_HOME and config file, different for two. */
function pitUnitName({ lazarusHome, configFile }: PitUnitRequest): string {
  const key = [lazarusHome ?? "", configFile ?? ""].join("\0");
  return key === "\0" ? "lazarus-pit" : `lazarus-pit-${sha256Hex(key).slice(0, 8)}`;
}

export interface SelfcheckUnitRequest {
  /** The workspace. */
  readonly root: string;
  /** The program and its first arguments: node and the launcher, by absolute path. */
  readonly program: readonly string[];
  readonly home: string;
  readonly isRoot: boolean;
  readonly staleMinutes: number;
  readonly configHome?: string | undefined;
  /** The config file for the self-check: a scheduler does not pass on the installing user's environment. */
  readonly config?: string | undefined;
}

export const FLOW_MARK = "made by lazarus flow install";

export function selfcheckUnit(request: SelfcheckUnitRequest): ServiceUnit {
  const { root, program, home, isRoot, staleMinutes, configHome, config } = request;
  const command = [...program, "flow", "selfcheck", "--root", root, "--stale-min", String(staleMinutes)];
  return {
    name: selfcheckUnitName(root),
    description: `Lazarus self-check of the flows in ${root}`,
    mark: FLOW_MARK,
    command: config === undefined ? command : [...command, "--config", config],
    environment: [],
    scope: isRoot ? "system" : "user",
    home,
    configHome,
    schedule: { everyMinutes: 10 },
    previewCommand: "lazarus flow install --schedule cron --dry-run",
  };
}

/** Stable for one workspace, different for two. */
function selfcheckUnitName(root: string): string {
  const slug = basename(root)
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  return `lazarus-flow-${slug === "" ? "root" : slug}-${sha256Hex(root).slice(0, 8)}`;
}
