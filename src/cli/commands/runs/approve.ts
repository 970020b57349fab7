import { approveRun } from "../../../run/operations/approve.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";
import { sameStore } from "./same-store.ts";

export const command = defineRunsCommand({
  about:
    "Answers an approval request of a run. Each request in the store can be answered once, and the recorded call is what " +
    "runs. The host of the run continues it; if no host is running, the run continues when one starts.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: {
    ...STORE_OPTIONS,
    request: { type: "text", value: "ID", summary: "the request, if the run has several (see runs show)" },
    deny: { type: "flag", summary: "deny it" },
    reason: { type: "text", value: "TEXT", summary: "the reason given to the model" },
  },
  examples: [
    ["lazarus runs approve 20261115-235301-x7k2p9", "allow the call that the run waits for"],
    ["lazarus runs approve 20261115-235301-x7k2p9 --deny --reason 'too expensive'", "refuse it"],
  ],
  exits: ["missing", "conflict", "busy", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const approved = !options.deny;
    const { reason } = options;
    const answer = { approved, ...(reason === undefined ? {} : { reason }) };
    const { request, verdict } = await approveRun(opened.log, runId, options.request, answer);
    const [tool] = request.names;
    context.emit(
      "run-approve/1",
      { run_id: runId, request: request.id, tool, approved: approved && verdict === "answered", verdict },
      () => `${request.id} ${verdict === "expired" ? "expired" : approved ? "approved" : "denied"}\n`,
    );
    if (verdict === "expired") context.say(`the request for ${tool} had expired, which counts as denied`);
    else context.say(`next: lazarus runs show ${runId}${sameStore(options)}`);
    return 0;
  },
});
