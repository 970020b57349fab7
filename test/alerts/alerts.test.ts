// Alerts: the plan, then the whole loop with real commands and servers on the loopback interface.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAlerts } from "../../src/alerts/loop.ts";
import { describeAlert } from "../../src/alerts/message.ts";
import { type AlertRules, type Delivery, MAX_ATTEMPTS, planAlerts } from "../../src/alerts/plan.ts";
import { alertSettings } from "../../src/alerts/settings.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import type { Event } from "../../src/registry/registry.ts";
import { startTestServer, type TestServer } from "../http/test-server.ts";

const NOW = 1_800_000_000_000;
const RULES: AlertRules = { kinds: ["alert"], targets: ["command"], maxAgeMs: 3_600_000 };
const NOTHING = new Set<string>();

const raise = (seq: number, agoMs = 0): Event => ({
  seq,
  time_ms: NOW - agoMs,
  mission: "m1",
  kind: "alert",
  data: { action: "ask", reason: "revive mode is ask" },
});
const entry = (
  seq: number,
  data: Partial<Delivery> & Pick<Delivery, "event" | "state">,
  agoMs = 0,
): Event => ({
  seq,
  time_ms: NOW - agoMs,
  mission: "m1",
  kind: "delivery",
  data: { target: "command", attempt: 1, problem: null, ...data },
});
const plan = (log: readonly Event[], rules = RULES, running: ReadonlySet<string> = NOTHING) => {
  const { due, givenUp, nextAtMs, closed } = planAlerts(log, rules, running, NOW);
  return {
    due: due.map(({ event, target, attempt, repeat }) => [event.seq, target, attempt, repeat]),
    givenUp: givenUp.map(({ event }) => event.seq),
    nextInMs: nextAtMs === undefined ? undefined : nextAtMs - NOW,
    closed: [...closed],
  };
};
const idle = { due: [], givenUp: [], nextInMs: undefined, closed: [] as number[] };

describe("planAlerts", () => {
  it("sends each configured kind of event to each target", () => {
    const rules: AlertRules = { ...RULES, targets: ["command", "ntfy"] };
    expect(plan([raise(1), { ...raise(2), kind: "start" }, raise(3)], rules).due).toEqual([
      [1, "command", 1, false],
      [1, "ntfy", 1, false],
      [3, "command", 1, false],
      [3, "ntfy", 1, false],
    ]);
  });

  it("sends nothing twice", () => {
    expect(plan([raise(1), entry(2, { event: 1, state: "delivered" })])).toEqual({ ...idle, closed: [1] });
  });

  it("does not send old events", () => {
    expect(plan([raise(1, 3_600_001)])).toEqual({ ...idle, closed: [1] });
    expect(plan([raise(1, 3_600_000)]).due).toHaveLength(1);
  });

  it("backs off after each failure, then gives up", () => {
    const failed = (attempt: number, agoMs: number) =>
      plan([raise(1), entry(2, { event: 1, state: "failed", attempt }, agoMs)]);
    expect(failed(1, 9_999)).toEqual({ ...idle, nextInMs: 1 });
    expect(failed(1, 10_000).due).toEqual([[1, "command", 2, false]]);
    expect(failed(2, 0).nextInMs).toBe(30_000);
    expect(failed(5, 0).nextInMs).toBe(1_800_000);
    expect(failed(MAX_ATTEMPTS, 0).givenUp).toEqual([1]);
    expect(plan([raise(1), entry(2, { event: 1, state: "given-up" })])).toEqual({ ...idle, closed: [1] });
  });

  it("skips running attempts, and repeats interrupted ones with a mark", () => {
    const log = [raise(1), entry(2, { event: 1, state: "sending" })];
    expect(plan(log, RULES, new Set(["1 command"]))).toEqual(idle);
    expect(plan(log).due).toEqual([[1, "command", 2, true]]);
  });

  it("terminates for every history of failures and crashes, with at most one unmarked delivery", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("ok", "fail", "cut", "cut-after"), { maxLength: 30 }), (fates) => {
        const log: Event[] = [raise(1)];
        let nowMs = NOW;
        let plain = 0;
        let sent = 0;
        for (let step = 0; step < 60; step += 1) {
          const { due, givenUp, nextAtMs, closed } = planAlerts(log, RULES, NOTHING, nowMs);
          if (closed.has(1)) return sent <= MAX_ATTEMPTS && plain <= 1;
          for (const { attempt } of givenUp)
            log.push(entry(log.length + 1, { event: 1, state: "given-up", attempt }));
          for (const { attempt, repeat } of due) {
            const fate = fates[sent++] ?? "ok";
            const at = { time_ms: nowMs };
            log.push({ ...entry(log.length + 1, { event: 1, state: "sending", attempt }), ...at });
            if (!repeat && (fate === "ok" || fate === "cut-after")) plain += 1;
            if (fate === "ok")
              log.push({ ...entry(log.length + 1, { event: 1, state: "delivered", attempt }), ...at });
            if (fate === "fail")
              log.push({ ...entry(log.length + 1, { event: 1, state: "failed", attempt }), ...at });
          }
          nowMs = nextAtMs ?? nowMs + 1;
        }
        return false;
      }),
    );
  });

  it("describes an event in one line", () => {
    expect(describeAlert(raise(1))).toBe(
      "m1: the agent died and needs your approval to be revived: revive mode is ask (lazarus revive m1)",
    );
  });
});

describe("the settings", () => {
  it("derive the targets from the configured keys", () => {
    const { rules, ntfy } = alertSettings(
      { alerts: { command: "mail", ntfy: "https://ntfy.sh/my-topic", on: ["death", "tombstone"] } },
      "c",
    );
    expect(rules).toEqual({
      kinds: ["death", "tombstone"],
      targets: ["command", "ntfy"],
      maxAgeMs: 3_600_000,
    });
    expect(ntfy).toEqual({ server: "https://ntfy.sh/", topic: "my-topic", tokenFile: undefined });
    expect(alertSettings({}, undefined).rules.targets).toEqual([]);
  });

  it.each([
    { alerts: [] },
    { alerts: { command: 7 } },
    { alerts: { webhook: "file:///s3cret" } },
    { alerts: { ntfy: "https://ntfy.sh/" } },
    { alerts: { on: ["explosion"] } },
    { alerts: { on: ["delivery"] } },
    { alerts: { max_age_seconds: 0 } },
  ])("%j is refused without printing the value", (document) => {
    expect(() => alertSettings(document, "c")).toThrowError(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
    expect(() => alertSettings(document, "c")).not.toThrowError(/s3cret/);
  });
});

describe("the loop", () => {
  let testServer: TestServer;
  let server: Server;
  let url: string;
  const received: { path: string; authorization: string | undefined; body: Record<string, unknown> }[] = [];
  let answers: number[] = [];
  beforeAll(async () => {
    testServer = await startTestServer();
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = JSON.parse(Buffer.concat(chunks).toString());
      received.push({ path: request.url!, authorization: request.headers.authorization, body });
      response.writeHead(answers.shift() ?? 200).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await testServer[Symbol.asyncDispose]();
  });

  const deliveries = () =>
    testServer.pitContext
      .registry()!
      .events({})
      .filter(({ kind }) => kind === "delivery")
      .map(({ data }) => data as unknown as Delivery);
  /** Runs the loop until `until` holds, then ends it. */
  async function runUntil(alerts: Record<string, unknown>, until: () => boolean) {
    const end = new AbortController();
    const running = runAlerts(testServer.pitContext, alertSettings({ alerts }, "c"), end.signal);
    await expect.poll(until, { timeout: 45_000 }).toBe(true);
    end.abort();
    await running;
  }
  const ask = (reason: string) =>
    testServer.pitContext.recordEvent({ kind: "alert", mission: "m1", data: { action: "ask", reason } });

  it("sends to a command, a webhook and ntfy once each, across two pits, without secrets", async () => {
    const out = join(testServer.directory, "out");
    const token = join(testServer.directory, "ntfy-token");
    writeFileSync(token, "tk_123\n");
    const urlFile = join(testServer.directory, "webhook-address");
    writeFileSync(urlFile, `${url}/hook/s3cret\n`);
    const alerts = {
      command: `cat >>${out}`,
      webhook_file: urlFile,
      ntfy: `${url}/deep/topic`,
      ntfy_token_file: token,
    };
    const key = `ghp_${"a1B2".repeat(9)}`;
    ask(`the agent printed ${key}`);
    const delivered = () => deliveries().filter(({ state }) => state === "delivered").length;
    await runUntil(alerts, () => delivered() === 3);
    await runUntil(alerts, () => true);
    await systemMachine.clock.sleep(300);
    expect(deliveries()).toHaveLength(6);
    const document = JSON.parse(readFileSync(out, "utf8"));
    expect(document).toMatchObject({
      schema: "lazarus.alert/1",
      mission: "m1",
      kind: "alert",
      repeat: false,
    });
    expect(received.map(({ path }) => path).sort()).toEqual(["/deep", "/hook/s3cret"]);
    expect(received.find(({ path }) => path === "/deep")).toMatchObject({
      authorization: "Bearer tk_123",
      body: { topic: "topic", title: "Lazarus: m1" },
    });
    const sent = JSON.stringify([document, received.map(({ body }) => body)]);
    expect(sent).not.toContain(key);
    const log = JSON.stringify(deliveries());
    for (const secret of ["s3cret", "tk_123", key]) expect(log).not.toContain(secret);
  });

  it("records failures without addresses, and repeats interrupted attempts with a mark", async () => {
    received.length = 0;
    answers = [500];
    ask("second");
    const seq = testServer.pitContext.registry()!.events({ last: 1 })[0]!.seq;
    const alerts = { webhook: `${url}/hook/s3cret` };
    // A later attempt may already have followed.
    const first = () => deliveries().find(({ event, state }) => event === seq && state === "failed");
    await runUntil(alerts, () => first() !== undefined);
    expect(first()).toMatchObject({
      attempt: 1,
      problem: "the webhook responded with 500",
    });
    // The state that a pit leaves if it is killed after sending and before recording it.
    ask("third");
    const third = testServer.pitContext.registry()!.events({ last: 1 })[0]!.seq;
    testServer.pitContext.recordEvent({
      kind: "delivery",
      mission: "m1",
      data: { event: third, target: "webhook", attempt: 1, state: "sending", problem: null },
    });
    await runUntil(alerts, () =>
      deliveries().some(({ event, state }) => event === third && state === "delivered"),
    );
    const sent = received.filter(({ body }) => (body.data as { reason: string }).reason === "third");
    expect(sent.map(({ body }) => [body.attempt, body.repeat])).toEqual([[2, true]]);
    expect(JSON.stringify(deliveries())).not.toContain("s3cret");
  });

  it("records a command that fails and a server that is unreachable as failures", async () => {
    ask("fourth");
    const seq = testServer.pitContext.registry()!.events({ last: 1 })[0]!.seq;
    const failed = () =>
      deliveries().filter(
        ({ event, state, attempt }) => event === seq && state === "failed" && attempt === 1,
      );
    await runUntil({ command: "exit 3", ntfy: "http://127.0.0.1:9/topic" }, () => failed().length === 2);
    expect(
      failed()
        .map(({ problem }) => problem)
        .sort(),
    ).toEqual(["the alert command exited with 3", expect.stringMatching(/^the webhook cannot be reached/)]);
  });

  it("does nothing without targets", async () => {
    await runAlerts(testServer.pitContext, alertSettings({}, undefined), new AbortController().signal);
    expect(existsSync(testServer.directory)).toBe(true);
    chmodSync(testServer.directory, 0o700);
  });
});
