// The section `flow` of the config: where `lazarus flow selfcheck` sends alerts.
import { setting } from "../cell/settings.ts";

export const FLOW_SETTINGS = {
  alert_command: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "text",
    description:
      "command line for /bin/sh that `lazarus flow selfcheck` runs for new findings, with JSON on standard input",
  }),
  alert_webhook: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "text",
    description: "URL that receives the findings of `lazarus flow selfcheck` as a JSON POST",
    secret: true,
  }),
};
