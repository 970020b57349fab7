// Starts the services that run inside the pit: the HTTP API, the Gitea webhook and alerts. Settings are checked before the
// pit starts; after that, a failure here is logged and the pit continues without the service. Hono and zod are loaded in
// the background, while the pit already watches agents.
import { runAlerts } from "../../../alerts/loop.ts";
import { alertSettings } from "../../../alerts/settings.ts";
import { callerKey } from "../../../http/caller.ts";
import { httpSettings } from "../../../http/settings.ts";
import { giteaSettings } from "../../../integrations/gitea/settings.ts";
import { createGiteaWebhook } from "../../../integrations/gitea/webhook.ts";
import type { PitContext } from "../../../pit/context.ts";
import { describeError } from "../../../pit/describe.ts";
import type { LiveCheckpoints } from "../../../pit/live/live-points.ts";

/** Starts immediately; dispose when the pit stops. */
export function openPitServices(pitContext: PitContext, live: LiveCheckpoints): AsyncDisposable {
  const { document, file } = pitContext.effective;
  const settings = {
    http: httpSettings(document, file),
    alerts: alertSettings(document, file),
    gitea: giteaSettings(document, file),
  };
  const closing = new AbortController();
  const alerts = runAlerts(pitContext, settings.alerts, closing.signal);
  const http = openApi(pitContext, live, settings);
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.all([alerts, http.then((stack) => stack.disposeAsync())]);
    },
  };
}

async function openApi(
  pitContext: PitContext,
  live: LiveCheckpoints,
  settings: {
    readonly http: ReturnType<typeof httpSettings>;
    readonly gitea: ReturnType<typeof giteaSettings>;
  },
): Promise<AsyncDisposableStack> {
  const stack = new AsyncDisposableStack();
  const { machine, config, version } = pitContext;
  try {
    const [{ mountHttp }, { createPitPort }, { watchFamilies }] = await Promise.all([
      import("../../../http/server.ts"),
      import("../../../http/pit-port.ts"),
      import("../../../http/metrics.ts"),
    ]);
    if (settings.gitea !== undefined && !settings.gitea.approvers?.length)
      pitContext.log("pit.gitea.approvers is not set, so every mission proposal is ignored");
    const webhooks =
      settings.gitea === undefined
        ? {}
        : {
            gitea: createGiteaWebhook({
              machine,
              config,
              settings: settings.gitea,
              recordEvent: (event) => pitContext.recordEvent(event),
            }),
          };
    const mount = (http: typeof settings.http) =>
      mountHttp(createPitPort(pitContext, live), {
        machine,
        version,
        runDir: config.run_dir,
        settings: http,
        webhooks,
        caller: () => callerKey(pitContext.effective, pitContext.environment),
        moreMetrics: () => watchFamilies(live.unseen),
      });
    const http = stack.use(
      await mount(settings.http).catch((error: unknown) => {
        pitContext.log(`HTTP API not available on TCP: ${describeError(error)}`);
        return mount({ tcpPort: null, chosen: true });
      }),
    );
    pitContext.onReload(http.announce);
    for (const warning of http.warnings) pitContext.log(warning);
    const addresses = [http.url, http.socket].filter((address) => address !== undefined);
    if (addresses.length > 0) pitContext.log(`HTTP API listening on ${addresses.join(" and ")}`);
  } catch (error) {
    pitContext.log(`HTTP API not available: ${describeError(error)}`);
  }
  return stack;
}
