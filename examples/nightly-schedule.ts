// A report every night at three. Each night runs once, however many hosts run this program; if no host was up at three, the
// last report that was missed is made at the next start. Kill it during a report and start it again: the report is finished.
//
//   node examples/nightly-schedule.ts ./my-data
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ToolLoopAgent, tool } from "ai";
import { currentEffect, durable, openSqliteRunStore } from "lazarus/run";
import { nextCronTime } from "lazarus/schedule";
import { createScriptedModel } from "lazarus/testing";
import { z } from "zod";

const data = process.argv[2] ?? "nightly-data";
mkdirSync(data, { recursive: true });

const reporter = durable(
  new ToolLoopAgent({
    id: "reporter",
    // Replace it with a real model, such as anthropic("claude-sonnet-4-5") from @ai-sdk/anthropic.
    model: createScriptedModel([{ tool: "publish", input: { report: "A quiet night." } }, "Published."]),
    tools: {
      publish: tool({
        description: "Publishes the report.",
        inputSchema: z.object({ report: z.string() }),
        execute: ({ report }) => {
          appendFileSync(
            join(data, "reports.jsonl"),
            `${JSON.stringify({ id: currentEffect()?.id, report })}\n`,
          );
          return "published";
        },
      }),
    },
  }),
  { store: openSqliteRunStore(join(data, "runs.db")) },
);

reporter.schedule(
  { name: "nightly", next: (afterMs) => nextCronTime("0 3 * * *", afterMs) },
  { prompt: "Report on the night." },
);

// Schedules do not keep a process alive. A real host has a server here.
setInterval(() => {}, 3_600_000);
process.stdout.write("waiting for three o'clock\n");
