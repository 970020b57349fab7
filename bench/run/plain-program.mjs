// The runs of lazarus-program.mjs without any recording: what the SDK's own loop costs.
import { createAgent } from "./agent.mjs";
import { measure } from "./measure.mjs";

const agent = createAgent();
await measure(Number(process.argv.at(-1)), async () => (await agent.generate({ prompt: "go" })).text);
