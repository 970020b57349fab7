// A LangGraph graph on the Lazarus saver: three nodes that add one message each. Killed anywhere, it continues at the node
// where it stopped. The saver stores only the changes of each step.
//
//   node examples/langgraph-graph.ts ./my-cell
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openSqliteSaver } from "lazarus/langgraph";

const cell = process.argv[2] ?? "graph-cell";
mkdirSync(cell, { recursive: true });

await using saver = openSqliteSaver(join(cell, "state", "langgraph.db"));
const say = (text: string) => () => ({ messages: [new AIMessage(text)] });
const graph = new StateGraph(MessagesAnnotation)
  .addNode("gather", say("gathered"))
  .addNode("think", say("thought"))
  .addNode("answer", say("answered"))
  .addEdge(START, "gather")
  .addEdge("gather", "think")
  .addEdge("think", "answer")
  .addEdge("answer", END)
  .compile({ checkpointer: saver });

const config = { configurable: { thread_id: "one" }, durability: "sync" as const };
const before = await graph.getState(config);
const started = before.createdAt !== undefined;
// Without input the graph continues from its last checkpoint. A node may have finished while its step has not: then `next`
// is empty, but its task is still listed.
if (!started || before.tasks.length > 0) {
  await graph.invoke(started ? null : { messages: [new HumanMessage("hello")] }, config);
}
const { values } = await graph.getState(config);
process.stdout.write(`${values.messages.map(({ content }: { content: string }) => content).join(", ")}\n`);
