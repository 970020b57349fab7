import { sendToRun } from "../../../run/operations/send.ts";
import { usage } from "../../parse.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";

export const command = defineRunsCommand({
  about:
    "Sends a message to a run. The model sees it before its next step; with --name, it goes to a tool that waits for a message " +
    "of that name. A message with the same --id is accepted only once. It is kept until the run reads it.",
  positionals: [
    { name: "run", summary: "id of the run, or a prefix of it" },
    { name: "message", summary: "the text; omit it with --value", optional: true },
  ],
  options: {
    ...STORE_OPTIONS,
    name: { type: "text", value: "NAME", summary: "the name that a tool waits for" },
    id: { type: "text", value: "ID", summary: "id of the message, so that sending it again does nothing" },
    value: { type: "text", value: "JSON", summary: "the message as JSON instead of text" },
  },
  examples: [
    ["lazarus runs send 20261115-235301-x7k2p9 'use euros'", "tell the model something"],
    [
      "lazarus runs send 20261115-235301-x7k2p9 --name paid --value '{\"amount\":7}'",
      "wake a tool that waits for it",
    ],
  ],
  exits: ["missing", "conflict", "machine"],
  async run(context, { args, options }) {
    const message = messageOf(args.message, options.value);
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const { name, id } = options;
    const sent = await sendToRun(opened.log, runId, message, { name, id });
    context.emit("run-send/1", { run_id: runId, id: sent.id, verdict: sent.verdict }, () => `${sent.id}\n`);
    if (sent.verdict === "duplicate") context.say(`run ${runId} already has a message with this id`);
    return 0;
  },
});

function messageOf(text: string | undefined, json: string | undefined): unknown {
  if ((text === undefined) === (json === undefined)) {
    throw usage("runs send", "give either a text or --value JSON");
  }
  if (json === undefined) return text;
  try {
    return JSON.parse(json);
  } catch {
    throw usage("runs send", `--value is not JSON: ${JSON.stringify(json.slice(0, 80))}`);
  }
}
