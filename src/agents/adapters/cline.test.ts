// Cline's transcript is one document that is replaced as a whole.
import { expect, it } from "vitest";
import { cline } from "./cline.ts";

const message = (role: string, ...content: object[]) => ({
  id: `${role}-${content.length}`,
  role,
  content,
  ts: 1000,
});
const files = (...messages: object[]) => [
  { name: "1794984905334_rdo5i.json", text: '{"cwd":"/x"}' },
  { name: "1794984905334_rdo5i.messages.json", text: JSON.stringify({ version: 1, messages }) },
];
const prompt = message("user", { type: "text", text: "Write" });
const call = message(
  "assistant",
  { type: "text", text: "Now." },
  { type: "tool_use", id: "c1", name: "run_commands", input: { commands: ["make", "make test"] } },
);
const result = message("user", { type: "tool_result", tool_use_id: "c1", content: [{ result: "ok" }] });
const done = message("assistant", { type: "text", text: "Done." });

it("reports the call in flight, with all its commands", () => {
  expect(cline.transcript.position(files(prompt, call))).toMatchObject({
    turn: 1,
    open: [{ id: "c1", tool: "run_commands", command: "make\nmake test" }],
    isFinished: false,
    damagedLines: 0,
  });
});

it("reports that the agent is done", () => {
  expect(cline.transcript.position(files(prompt, call, result, done))).toMatchObject({
    turn: 2,
    open: [],
    isFinished: true,
  });
  expect(cline.transcript.entries(files(prompt, done)).map(({ text }) => text)).toEqual(["Write", "Done."]);
});

it("a message about a failed request is no response, and does not end the turn", () => {
  const text = "Incorrect API key provided";
  const error = {
    ...message("assistant", { type: "text", text }),
    metadata: { displayOnly: true, displayRole: "error" },
  };
  const failed = files(prompt, call, result, error);
  expect(cline.transcript.position(failed)).toMatchObject({ turn: 1, open: [], isFinished: false });
  expect(cline.transcript.entries(failed).at(-1)).toMatchObject({ role: "system", text });
});

it("reports a document that was cut off", () => {
  const [, whole] = files(prompt, call);
  const cut = { ...whole!, text: whole!.text.slice(0, 60) };
  expect(cline.transcript.position([cut])).toMatchObject({ turn: 0, damagedLines: 1 });
});
