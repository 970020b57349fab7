import { SCOPES, type Scope } from "../../../http/request-checks.ts";
import { createToken } from "../../../http/tokens.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { formatTime } from "../../render/format.ts";
import { refuseAgent } from "./refuse-agent.ts";

/** A hundred years. */
const DAYS_MAX = 36_500;
const DAY_MS = 24 * 3_600_000;

export const command = defineCommand({
  about:
    "Creates a token for the HTTP API of the pit and prints it. It is shown only once: Lazarus stores its digest. It is " +
    "valid immediately, even for a running pit. Programs that only watch need only the scope read; " +
    "with --mission, a token is accepted only for requests about that mission.",
  positionals: [{ name: "name", summary: "name of the token, for token list and token revoke" }],
  options: {
    scope: {
      type: "text",
      choices: SCOPES,
      summary: "read (default), or operate: also stop, pause, revive, heartbeat …",
    },
    mission: { type: "text", value: "ID", summary: "only for this mission" },
    "expires-days": {
      type: "number",
      value: "N",
      summary: "valid for N days (default: until it is revoked)",
    },
  },
  examples: [
    ["lazarus token create grafana", "may read everything"],
    ["lazarus token create ci --scope operate --mission tidy-inbox --expires-days 30", "for one mission"],
  ],
  exits: ["conflict", "busy", "machine"],
  async run(context, { args, options }) {
    refuseAgent(context, "create a token");
    const { machine } = context;
    const { scope = "read", mission = null, "expires-days": days } = options;
    if (days !== undefined && !(days > 0 && days <= DAYS_MAX))
      throw new LazarusError("USAGE", `--expires-days takes a number above 0, at most ${DAYS_MAX}`, {
        hint: `lazarus token create ${args.name} --expires-days 30`,
      });
    const expiresMs = days === undefined ? null : machine.clock.nowMs() + days * DAY_MS;
    const grant = { scope: scope as Scope, mission: mission === null ? null : context.mission(mission) };
    const wanted = { name: args.name, ...grant, expiresMs };
    const token = await createToken(machine, context.config.config.run_dir, wanted);
    context.emit(
      "token/1",
      { name: args.name, scope, mission, expires_ms: expiresMs, token },
      () => `${token}\n`,
    );
    const until = expiresMs === null ? "" : ` until ${formatTime(expiresMs)}`;
    context.say(
      `${scope} ${mission === null ? "for all missions" : `for ${mission}`}${until}; it is not shown again`,
    );
    context.say(`  to revoke it: lazarus token revoke ${args.name}`);
    return 0;
  },
});
