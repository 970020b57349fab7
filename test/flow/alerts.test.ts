// The whole self-check: each finding is sent once until it changes, to a command and a webhook, and the audit log rotates.
// Text from a flow never becomes part of a command line.
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeFlow, selfcheck, startFlow } from "../../src/flow/index.ts";
import { selfOwner } from "../../src/flow/locking/owner.ts";
import { audit, auditFile } from "../../src/flow/operations/audit.ts";
import { systemDisk } from "../../src/platform/disk.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createFaultyDisk } from "../../src/testing/index.ts";
import { createFixture, REPORT } from "./fixture.ts";

const HOUR_MS = 3_600_000;

describe("alerts", () => {
  it("run the command once per finding, and again when the finding changes or returns", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    const hostile = { ...REPORT, step: "$(touch pwned); `touch pwned`", notes: "'; touch pwned; '" };
    await startFlow(fixture.workspace, hostile, { me });
    await fixture.machine.clock.advance(HOUR_MS);
    const out = join(fixture.root, "alerts.jsonl");
    const check = () => selfcheck(fixture.workspace, 10, { command: `cat >> '${out}'; echo >> '${out}'` });
    const sent = () => (existsSync(out) ? readFileSync(out, "utf8").trim().split("\n").length : 0);
    expect(await check()).toMatchObject({ alerted: 1, problems: [] });
    expect(await check()).toMatchObject({ alerted: 0 });
    expect(sent()).toBe(1);
    expect(JSON.parse(readFileSync(out, "utf8"))).toMatchObject({
      schema: "lazarus.flow-alert/1",
      count: 1,
      findings: [{ workflowId: "report", ageMinutes: 60 }],
    });
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, me);
    expect(await check()).toMatchObject({ alerted: 0, report: { status: "ok" } });
    await fixture.machine.clock.advance(HOUR_MS);
    expect(await check()).toMatchObject({ alerted: 1 });
    fixture.write("memory/checkpoints/bad.json", "junk");
    expect(await check()).toMatchObject({
      alerted: 1,
      report: { count: 1, invalid: [{ workflowId: "bad" }] },
    });
    expect(sent()).toBe(3);
    expect(existsSync(join(fixture.root, "pwned")) || existsSync("pwned")).toBe(false);
  });

  it("are retried when not delivered, and the address is not printed", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await fixture.machine.clock.advance(HOUR_MS);
    const failing = await selfcheck(fixture.workspace, 10, {
      command: "echo no mail today >&2; exit 9",
      webhook: "http://127.0.0.1:1/hook?token=hidden",
    });
    expect(failing.alerted).toBe(0);
    expect(failing.problems).toEqual([
      "the alert command exited with 9: no mail today",
      expect.stringMatching(/^the webhook cannot be reached/),
    ]);
    expect(readFileSync(auditFile(fixture.root), "utf8")).not.toContain("hidden");
    expect(await selfcheck(fixture.workspace, 10, { command: "true" })).toMatchObject({ alerted: 1 });
  });

  it("are not repeated to a target because another target failed", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await fixture.machine.clock.advance(HOUR_MS);
    const out = join(fixture.root, "alerts.jsonl");
    const check = (webhook: string) =>
      selfcheck(fixture.workspace, 10, { command: `cat >> '${out}'; echo >> '${out}'`, webhook });
    expect(await check("http://127.0.0.1:1/")).toMatchObject({ alerted: 1, problems: [{}] });
    expect(await check("http://127.0.0.1:1/")).toMatchObject({ alerted: 0, problems: [{}] });
    expect(readFileSync(out, "utf8").trim().split("\n")).toHaveLength(1);
  });

  it("are sent once by two concurrent checks", async () => {
    using fixture = createFixture();
    // The system clock: the second check polls until the first has sent its alert.
    const workspace = { root: fixture.root, machine: systemMachine };
    await startFlow(workspace, REPORT, { me: selfOwner(systemMachine.processes) });
    const out = join(fixture.root, "alerts.jsonl");
    const check = () => selfcheck(workspace, -1, { command: `sleep 0.2; cat >> '${out}'; echo >> '${out}'` });
    const both = await Promise.all([check(), check()]);
    expect(both.map(({ alerted }) => alerted).sort()).toEqual([0, 1]);
    expect(readFileSync(out, "utf8").trim().split("\n")).toHaveLength(1);
  });

  it("are sent even when nothing can be written, with a warning that they will repeat", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await fixture.machine.clock.advance(HOUR_MS);
    const out = join(fixture.root, "alerts.jsonl");
    for (const round of [1, 2]) {
      const writes = ["create", "write", "openAppend", "mkdir"];
      const disk = createFaultyDisk(systemDisk, {
        code: "ENOSPC",
        at: ({ method }) => writes.includes(method),
      });
      const workspace = { root: fixture.root, machine: { ...fixture.machine, disk } };
      const { report, alerted, problems } = await selfcheck(workspace, 10, {
        command: `cat >> '${out}'; echo >> '${out}'`,
      });
      expect(report.count).toBe(1);
      expect(alerted).toBe(1);
      expect(problems.join("\n")).toContain("the disk is full");
      expect(readFileSync(out, "utf8").trim().split("\n")).toHaveLength(round);
    }
  });

  it("do not follow redirects of a webhook", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await fixture.machine.clock.advance(HOUR_MS);
    const paths: string[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url ?? "");
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const webhook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
      expect((await selfcheck(fixture.workspace, 10, { webhook })).problems).toEqual([
        "the webhook responded with 307",
      ]);
      expect(paths).toEqual(["/hook"]);
    } finally {
      server.close();
    }
  });

  it("are posted to a webhook as JSON", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await fixture.machine.clock.advance(HOUR_MS);
    const bodies: string[] = [];
    let status = 500;
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => {
        body += data;
      });
      request.on("end", () => {
        bodies.push(body);
        response.writeHead(status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const webhook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
      expect(await selfcheck(fixture.workspace, 10, { webhook })).toMatchObject({
        alerted: 0,
        problems: ["the webhook responded with 500"],
      });
      status = 204;
      expect(await selfcheck(fixture.workspace, 10, { webhook })).toMatchObject({ alerted: 1, problems: [] });
      expect(await selfcheck(fixture.workspace, 10, { webhook })).toMatchObject({ alerted: 0 });
      expect(bodies.map((body) => JSON.parse(body).count)).toEqual([1, 1]);
    } finally {
      server.close();
    }
  });
});

describe("the audit log", () => {
  it("has a line per check, and is not created where there are no flows", async () => {
    using fixture = createFixture();
    await selfcheck(fixture.workspace, 10, {});
    expect(existsSync(join(fixture.root, "memory"))).toBe(false);
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    await selfcheck(fixture.workspace, 10, {});
    await fixture.machine.clock.advance(HOUR_MS);
    await selfcheck(fixture.workspace, 10, {});
    const lines = readFileSync(auditFile(fixture.root), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { kind: "selfcheck", status: "ok", stale: 0, checked: 1 },
      { kind: "selfcheck", status: "alert", stale: 1 },
    ]);
  });

  it("rotates by size and keeps three old files", async () => {
    using fixture = createFixture();
    for (let i = 0; i < 60; i += 1)
      expect(await audit(fixture.workspace, "selfcheck", { i }, 500)).toBeUndefined();
    const sizes = [0, 1, 2, 3].map((age) => statSync(auditFile(fixture.root, age)).size);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    expect(existsSync(auditFile(fixture.root, 4))).toBe(false);
    const all = [3, 2, 1, 0].flatMap((age) =>
      readFileSync(auditFile(fixture.root, age), "utf8").trim().split("\n"),
    );
    const numbers = all.map((line) => JSON.parse(line).i as number);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, k) => 60 - numbers.length + k));
  });

  it("does not fail the check when it cannot be written", async () => {
    using fixture = createFixture();
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    fixture.write("memory/checkpoints/.lazarus", "a file in the way");
    const { report, problems } = await selfcheck(fixture.workspace, 10, {});
    expect(report.status).toBe("ok");
    expect(problems).toEqual([expect.stringContaining("audit log")]);
  });
});
