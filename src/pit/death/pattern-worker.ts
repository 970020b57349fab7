// The worker thread that matches patterns: the user's regular expressions may take forever on what an agent printed, so
// they never run on the pit's main thread.
import { parentPort } from "node:worker_threads";
import type { PatternReply, PatternTask } from "./match-patterns.ts";

parentPort!.once("message", ({ lines, patterns }: PatternTask) => {
  const reply = (message: PatternReply) => parentPort!.postMessage(message);
  for (const [index, pattern] of patterns.entries()) {
    reply({ index, done: false });
    const expression = new RegExp(pattern, "i");
    const line = lines.findLastIndex((each) => expression.test(each));
    const group = line === -1 ? undefined : expression.exec(lines[line]!)?.[1];
    reply({ index, done: true, line, group });
  }
});
