import { revokeToken } from "../../../http/tokens.ts";
import { defineCommand } from "../../command.ts";

export const command = defineCommand({
  about:
    "Revokes a token of the HTTP API. It takes effect with the next request, even for a pit that is already running. To " +
    "replace the token in run_dir/token, remove that file and restart the pit.",
  positionals: [{ name: "name", summary: "name of the token" }],
  options: {},
  examples: [["lazarus token revoke grafana", "the token is no longer accepted"]],
  exits: ["missing", "busy", "machine"],
  async run(context, { args }) {
    await revokeToken(context.machine, context.config.config.run_dir, args.name);
    context.emit("token-revoke/1", { name: args.name, revoked: true }, () => "");
    context.say(`revoked ${args.name}`);
    return 0;
  },
});
