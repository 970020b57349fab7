// A LangGraph graph whose state is saved in SQLite. examples/langgraph-graph.ts shows how it resumes after a kill.
//
//   node examples/library/langgraph.ts ./home
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openSqliteSaver } from "lazarus/langgraph";

await using saver = openSqliteSaver(join(process.argv[2] ?? ".", "langgraph.db"));
const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", () => ({ messages: [new AIMessage("hello")] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile({ checkpointer: saver });
const config = { configurable: { thread_id: "one" } };
await graph.invoke({ messages: [new HumanMessage("hi")] }, config);
const { values } = await graph.getState(config);
console.log(`ok: ${values.messages.length} messages`);
