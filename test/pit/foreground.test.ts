// A caller that runs an agent in the foreground waits for that life only, not for a revival.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { reviveMission } from "../../src/pit/actions.ts";
import { openSignalRelay, waitForAgent } from "../../src/pit/foreground.ts";
import { startMission } from "../../src/pit/start-mission.ts";
import { stopMission } from "../../src/pit/stop.ts";
import { startTestServer, type TestServer } from "../http/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

it("returns the status of the first life when a pit has already started the next one", async () => {
  const { pitContext } = server;
  const mission = parseMissionId("m1");
  const first = await startMission(pitContext, {
    mission,
    agent: "sh",
    command: ["sh", "-c", '[ "$LAZARUS_EPOCH" = 1 ] && exit 5; exec sleep 600'],
    cwd: null,
    env: {},
    revive: "yes",
    substitute: null,
    stall_seconds: null,
  });
  await first.ended;
  // In place of a pit.
  const next = await reviveMission(pitContext, mission);
  expect(next.outcome).toBe("started");
  try {
    using relay = openSignalRelay();
    const end = await waitForAgent(pitContext, mission, first, relay);
    expect(end).toMatchObject({ status: 5, revivedAs: 2, record: undefined, problem: undefined });
  } finally {
    await stopMission(pitContext, mission, { checkpoint: false, graceSeconds: 0 });
  }
});
