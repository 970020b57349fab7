// A flow: starts it or resumes it where it stopped, and completes a step.
//
//   node examples/library/flow.ts ./workspace
import { mkdirSync } from "node:fs";
import { changeFlow, openWorkspace, resumeFlow, startFlow } from "lazarus/flow";

const root = process.argv[2] ?? "workspace";
mkdirSync(root, { recursive: true });
const workspace = openWorkspace(root);
const { me } = workspace;

const { found } = await resumeFlow(workspace, { me });
if (found === undefined) {
  const flow = { workflow: "report", agent: "anna", idempotency: "report-11" };
  await startFlow(workspace, { ...flow, step: "fetch", remaining: ["fetch", "send"] }, { me });
}
await changeFlow(workspace, { workflow: "report" }, { complete: ["fetch"] }, me);
console.log("ok: fetch is done, send is left");
