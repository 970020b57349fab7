// A graph of three nodes on a saver in PostgreSQL, which tests kill and restart: continues at the node where it stopped and
// prints all messages.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openPostgresSaver } from "../../src/integrations/langgraph/index.ts";

await using saver = await openPostgresSaver(process.argv[2] ?? "", { maxConnections: 2 });
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
const begun = before.createdAt !== undefined;
if (!begun || before.tasks.length > 0) {
  await graph.invoke(begun ? null : { messages: [new HumanMessage("hello")] }, config);
}
const { values } = await graph.getState(config);
process.stdout.write(values.messages.map(({ content }: { content: string }) => content).join(", "));
