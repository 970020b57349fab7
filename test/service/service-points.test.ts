// Kills the pit at each crash point of alerts and proposals. The next pit continues: an alert that may have arrived is
// repeated with a mark, and a proposal becomes exactly one cell.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FORM_FIELDS } from "../../src/integrations/gitea/template.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { BUILT, LAUNCHER } from "../cli/hermetic.ts";
import { askRaw } from "../http/test-server.ts";
import { createPitWorld, type PitWorld } from "../pit/pit-world.ts";

const ARM = pathToFileURL(join(BUILT, "dist", "arm-crash-point.js")).href;
const pointsIn = (folder: string, prefix: string) =>
  listCrashPoints(join(import.meta.dirname, "..", "..", "src", folder))
    .map(({ name }) => name)
    .filter((name) => name.startsWith(prefix));
const ALERT_POINTS = pointsIn("alerts", "alerts.");
const PROPOSAL_POINTS = pointsIn("integrations/gitea", "gitea.");

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const configure = (document: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify(document));
const openArmedPit = (point: string) =>
  spawn(process.execPath, ["--import", ARM, LAUNCHER, "pit"], {
    cwd: world.cwd,
    env: { ...world.env, LAZARUS_CRASH_AT: point },
    stdio: "ignore",
  });

it("finds the crash points", () => {
  expect(ALERT_POINTS.length).toBeGreaterThanOrEqual(2);
  expect(PROPOSAL_POINTS.length).toBeGreaterThanOrEqual(3);
});

describe("an alert", () => {
  it.each(ALERT_POINTS)("killed at %s is delivered; a repetition is marked", async (point) => {
    const out = join(world.directory, "alerts");
    configure({ alerts: { command: `cat >>${out}; echo >>${out}` } });
    const sent = () =>
      existsSync(out)
        ? readFileSync(out, "utf8")
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line))
        : [];
    world.run(["run", "m1", "-d", "--", "sh", "-c", "exit 1"]);
    const armed = openArmedPit(point);
    await world.until(`its death at ${point}`, () => armed.signalCode === "SIGKILL");
    const before = sent().length;
    await world.openPit();
    const deliveries = () =>
      world
        .run(["events", "m1", "--json", "-n", "0"])
        .stdout.trim()
        .split("\n")
        .map((line) => JSON.parse(line))
        .filter(({ kind }) => kind === "delivery")
        .map(({ data }) => data.state);
    await world.until("the delivery", () => deliveries().includes("delivered"));
    expect(deliveries()).toEqual(["sending", "sending", "delivered"]);
    expect(sent().map(({ repeat }) => repeat)).toEqual([...(before === 1 ? [false] : []), true]);
    expect(new Set(sent().map(({ id }) => id)).size).toBe(1);
  });
});

describe("a proposal", () => {
  const SECRET = "0123456789abcdef0123456789abcdef";
  const answers: Record<string, string> = { mission: "tidy-inbox", goal: "An empty inbox." };
  const body = JSON.stringify({
    action: "label_updated",
    issue: {
      number: 7,
      body: FORM_FIELDS.map(({ id, label }) => `### ${label}\n\n${answers[id] ?? "_No response_"}\n`).join(
        "\n",
      ),
      state: "open",
      user: { login: "alice" },
      labels: [{ name: "mission-approved" }],
    },
    repository: { full_name: "o/r" },
    sender: { login: "bob" },
  });
  const deliver = () =>
    askRaw({
      socketPath: join(world.home, "run", "pit.sock"),
      path: "/v1/webhooks/gitea",
      method: "POST",
      headers: {
        host: "localhost",
        "x-gitea-event": "issues",
        "x-gitea-delivery": "11111111-2222",
        "x-gitea-signature": createHmac("sha256", SECRET).update(body).digest("hex"),
      },
      body,
    }).then(({ status }) => status);
  /** Retries like a forge that gets no response. */
  const deliverUntilAnswered = async () => {
    let status: number | undefined;
    let trying = false;
    await world.until("an answer", () => {
      if (!trying && status === undefined) {
        trying = true;
        deliver()
          .then((answer) => {
            status = answer;
          })
          .catch(() => {})
          .finally(() => {
            trying = false;
          });
      }
      return status !== undefined;
    });
    return status;
  };

  it.each(PROPOSAL_POINTS)("killed at %s becomes exactly one complete cell", async (point) => {
    const secret = join(world.directory, "secret");
    writeFileSync(secret, SECRET, { mode: 0o600 });
    configure({ pit: { http_port: null, gitea: { secret_file: secret, approvers: ["bob"] } } });
    const armed = openArmedPit(point);
    await world.until("the API", () => existsSync(join(world.home, "run", "http.json")));
    await expect(deliver()).rejects.toThrow();
    await world.until(`its death at ${point}`, () => armed.signalCode === "SIGKILL");
    await world.openPit();
    expect(await deliverUntilAnswered()).toBe(200);
    expect(await deliver()).toBe(409);
    const cell = join(world.missions, "tidy-inbox");
    expect(JSON.parse(readFileSync(join(cell, "meta", "proposal.json"), "utf8")).answers).toEqual(answers);
    expect(world.run(["scan", "--json"]).stdout).toContain('"uninitialized":0');
    expect(world.state("tidy-inbox")).toBe("none");
  });
});
