// An agent that is stepped back to an older checkpoint does not repeat what it did to the outside world (INV-5): the effect
// history is not restored, the hand-off and status list what was done since.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

it("a mail sent by flow once is sent once, although the same crash three times makes the pit step back", async () => {
  writeFileSync(
    join(world.home, "config.json"),
    JSON.stringify({
      pit: {
        backoff_seconds: [0],
        max_revivals_per_hour: 20,
        alike_crashes_per_step: 3,
        step_back_after_seconds: 0,
      },
    }),
  );
  const cell = join(world.missions, "m1");
  const outbox = world.path("outbox");
  await world.call(["init", "m1"]);
  const root = join(cell, "worktree");
  const flow = "flow start -w report --agent anna --idempotency r1 --step send --remaining send";
  await world.call([...flow.split(" "), "--root", root]);
  writeFileSync(join(root, "state"), "good\n");
  const { stdout } = await world.call(["checkpoint", "m1"]);
  await world.openPit();
  // The first life corrupts the state that all later lives fail on, until the pit steps back.
  const script = `
    lazarus flow once -w report --key send -- sh -c 'echo "mail from life $LAZARUS_EPOCH" >>${outbox}; echo sent' || exit 9
    [ "$LAZARUS_EPOCH" = 1 ] && echo poison >state
    grep -q good state && echo "life $LAZARUS_EPOCH goes on" && exec sleep 600
    echo cannot; exit 1`;
  world.run(["run", "m1", "-d", "--revive", "yes", "--", "sh", "-c", script]);
  // The life after the step back asks for the mail again and gets the record.
  await world.until("a life that lasts", () => /life [5-9] goes on/.test(world.log("m1")), 120_000);
  expect(world.log("m1")).toContain("sent\nsend was already done");
  expect(readFileSync(outbox, "utf8")).toBe("mail from life 1\n");
  const resume = JSON.parse(readFileSync(join(cell, "state", "resume.json"), "utf8"));
  expect(resume.stepped_back_to).toBe(stdout.trim());
  expect(resume.done_since).toMatchObject([{ source: "once", where: "report", name: "send", state: "done" }]);
  const handoff = readFileSync(join(cell, "artifacts", "handoff.md"), "utf8");
  expect(handoff).toMatch(/## Done since\n[^#]*\n {4}flow report, "send" \(sh -c .*\): done at /);
  expect(handoff).toContain("## Effects with unknown outcome\n\nNone.");
  const status = await world.call(["status", "m1"]);
  expect(status.stdout).toMatch(/m1: done since the checkpoint .*\n {2}flow report, "send" .*: done at /);
  const [view] = JSON.parse((await world.call(["status", "m1", "--json"])).stdout).missions;
  expect(view.done_since).toEqual(resume.done_since);
});
