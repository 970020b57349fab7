// The runs of agent.mjs as a workflow of Vercel's Workflow, which its own compiler turns into bundles. Without the SDK's loop:
// a workflow can only call steps.
const STEPS = 10;
const TEXT = "x".repeat(500);

async function model(step: number) {
  "use step";
  return { text: TEXT, call: { n: step } };
}

async function work(step: number) {
  "use step";
  return { ok: step };
}

export async function talk() {
  "use workflow";
  for (let step = 1; step < STEPS; step += 1) {
    await model(step);
    await work(step);
  }
  await model(STEPS);
  return "done";
}
