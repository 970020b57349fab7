// Proposals from Gitea and Forgejo: the form, hostile answers, and deliveries that are forged, repeated or cut off.
import { createHmac } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { WebhookHandler } from "../../src/http/port.ts";
import * as shapes from "../../src/http/schemas.ts";
import { classifyDelivery } from "../../src/integrations/gitea/delivery.ts";
import { readProposal } from "../../src/integrations/gitea/form.ts";
import { giteaSettings } from "../../src/integrations/gitea/settings.ts";
import { refuseUnsigned } from "../../src/integrations/gitea/signature.ts";
import { FORM_FIELDS, proposalTemplate } from "../../src/integrations/gitea/template.ts";
import { createGiteaWebhook } from "../../src/integrations/gitea/webhook.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createWorld } from "../cli/hermetic.ts";
import { createPlace, startTestServer, type TestServer } from "../http/test-server.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const RULES = { label: "mission-approved", repositories: undefined, approvers: ["bob"] };

const answersText = (answers: Record<string, string>) =>
  FORM_FIELDS.map(({ id, label }) => `### ${label}\n\n${answers[id] ?? "_No response_"}\n`).join("\n");
const GOOD = {
  mission: "tidy-inbox",
  revive: "yes",
  goal: "An empty inbox.\nNothing lost.",
  agent: "claude",
};

const payloadOf = (
  body: string,
  more: Record<string, unknown> = {},
  issue: Record<string, unknown> = {},
) => ({
  action: "label_updated",
  issue: {
    number: 7,
    title: "Mission: tidy",
    body,
    state: "open",
    html_url: "https://forge.example/o/r/issues/7",
    labels: [{ name: "mission-approved" }],
    user: { login: "ann" },
    pull_request: null,
    ...issue,
  },
  repository: { full_name: "o/r" },
  sender: { login: "bob" },
  ...more,
});

const codeOf = (act: () => unknown): string | undefined => {
  try {
    act();
  } catch (error) {
    return error instanceof LazarusError ? error.code : String(error);
  }
  return undefined;
};

describe("the form", () => {
  it("is valid YAML with a title, and a label and an id for every field", () => {
    const form = parse(proposalTemplate('ok "now"'));
    expect(form).toMatchObject({ name: "Mission proposal", about: expect.any(String) });
    const fields = form.body.filter(({ type }: { type: string }) => type !== "markdown");
    expect(
      fields.map(({ id, type, attributes, validations }: Record<string, Record<string, unknown>>) => [
        id,
        type,
        attributes!.label,
        validations!.required,
      ]),
    ).toEqual(FORM_FIELDS.map(({ id, type, label, required }) => [id, type, label, required]));
    expect(form.body[0].attributes.value).toContain('"ok "now""');
  });

  it("is parsed back into its answers", () => {
    expect(readProposal(answersText(GOOD))).toEqual(GOOD);
    expect(readProposal(answersText(GOOD).replaceAll("\n", "\r\n"))).toEqual(GOOD);
    expect(readProposal(`Hello!\n\n${answersText(GOOD)}\n\n`)).toEqual(GOOD);
  });

  it.each<[string, Record<string, string>]>([
    ["a mission id with ..", { ...GOOD, mission: "../../etc" }],
    ["a mission with a slash", { ...GOOD, mission: "a/b" }],
    ["a mission id that looks like an option", { ...GOOD, mission: "--help" }],
    ["a mission with an escape sequence", { ...GOOD, mission: "a\u001b[31m" }],
    ["a mission of two lines", { ...GOOD, mission: "a\nb" }],
    ["no mission", { goal: "x" }],
    ["no goal", { mission: "a" }],
    ["an unknown mode", { ...GOOD, revive: "always" }],
    ["a goal that is too long", { ...GOOD, goal: "x".repeat(20_001) }],
    ["a goal that answers another question again", { ...GOOD, goal: "fine\n\n### Mission id\n\nother" }],
  ])("refuses %s", (_, answers) => {
    expect(codeOf(() => readProposal(answersText(answers)))).toMatch(
      /^(PROPOSAL_INVALID|MISSION_ID_INVALID)$/,
    );
  });

  it("treats any text as data: it is cleaned or refused", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 300 }),
        fc.string({ maxLength: 60 }),
        (goal, mission) => {
          try {
            const answers = readProposal(answersText({ ...GOOD, goal, mission }));
            expect(answers.mission).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/);
            expect(answers.goal).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
          } catch (error) {
            expect(error).toBeInstanceOf(LazarusError);
          }
        },
      ),
    );
  });
});

describe("classifyDelivery", () => {
  const body = answersText(GOOD);
  it("accepts approvals from Gitea and Forgejo", () => {
    for (const [event, action] of [
      ["issues", "label_updated"],
      ["issue_label", "label_updated"],
      ["issues", "labeled"],
    ] as const)
      expect(classifyDelivery(event, payloadOf(body, { action }), RULES)).toMatchObject({
        act: "create",
        proposal: { repository: "o/r", issue: 7, approvedBy: "bob", author: "ann", text: body },
      });
  });

  it.each<[string, string, Record<string, unknown>, Record<string, unknown>]>([
    ["a push", "push", {}, {}],
    ["an issue that was opened with the label", "issues", { action: "opened" }, {}],
    ["an edit", "issues", { action: "edited" }, {}],
    ["another label", "issues", {}, { labels: [{ name: "bug" }] }],
    ["labels that are not a list", "issues", {}, { labels: "mission-approved" }],
    ["a closed issue", "issues", {}, { state: "closed" }],
    ["a pull request", "issues", {}, { pull_request: { merged: false } }],
    ["no repository", "issues", { repository: null }, {}],
    ["no sender", "issues", { sender: {} }, {}],
    ["an issue number that is not a number", "issues", {}, { number: "7" }],
  ])("%s is ignored, with a reason", (_, event, more, issue) => {
    expect(classifyDelivery(event, payloadOf(body, more, issue), RULES)).toMatchObject({
      act: "ignore",
      reason: expect.any(String),
    });
  });

  it("respects the lists of repositories and approvers", () => {
    const of = (more: object) => classifyDelivery("issues", payloadOf(body), { ...RULES, ...more }).act;
    expect(of({ repositories: ["o/r"], approvers: ["bob"] })).toBe("create");
    expect(of({ repositories: ["o/other"] })).toBe("ignore");
    expect(of({ approvers: ["BOB"] })).toBe("create");
    expect(of({ approvers: ["ann"] })).toBe("ignore");
    expect(of({ approvers: [] })).toBe("ignore");
    expect(of({ approvers: undefined })).toBe("ignore");
  });

  it("nobody approves their own proposal", () => {
    const own = payloadOf(body, {}, { user: { login: "Bob" } });
    expect(classifyDelivery("issues", own, RULES)).toMatchObject({ act: "ignore" });
    const anonymous = payloadOf(body, {}, { user: null });
    expect(classifyDelivery("issues", anonymous, RULES)).toMatchObject({ act: "ignore" });
  });
});

describe("the signature", () => {
  const body = Buffer.from('{"a":1}');
  const right = createHmac("sha256", SECRET).update(body).digest("hex");
  const of = (headers: Record<string, string>, bytes: Uint8Array = body) =>
    codeOf(() => refuseUnsigned(new Headers(headers), bytes, SECRET));

  it("of either forge is accepted", () => {
    expect(of({ "x-gitea-signature": right })).toBeUndefined();
    expect(of({ "x-forgejo-signature": right.toUpperCase() })).toBeUndefined();
    expect(of({ "x-hub-signature-256": `sha256=${right}`, "x-gitea-signature": right })).toBeUndefined();
  });

  it.each<[string, Record<string, string>]>([
    ["none", {}],
    ["an empty one", { "x-gitea-signature": "" }],
    ["a wrong one", { "x-gitea-signature": right.replace(/^./, (c) => (c === "0" ? "1" : "0")) }],
    ["half of one", { "x-gitea-signature": right.slice(0, 32) }],
    ["one that is not hex", { "x-gitea-signature": "z".repeat(64) }],
    [
      "one with another secret",
      { "x-gitea-signature": createHmac("sha256", "other").update(body).digest("hex") },
    ],
    ["one right and one wrong", { "x-gitea-signature": right, "x-forgejo-signature": "0".repeat(64) }],
    ["one under an old name", { "x-hub-signature": right }],
  ])("%s is refused", (_, headers) => {
    expect(of(headers)).toBe("SIGNATURE_REFUSED");
  });

  it("covers the raw bytes: one more space is another body", () => {
    expect(of({ "x-gitea-signature": right }, Buffer.from('{"a": 1}'))).toBe("SIGNATURE_REFUSED");
  });
});

describe("the settings", () => {
  it("are undefined without the section, and wrong values are named", () => {
    expect(giteaSettings({}, undefined)).toBeUndefined();
    expect(giteaSettings({ pit: { gitea: { secret_file: "/s" } } }, "c")).toMatchObject({
      label: "mission-approved",
    });
    for (const gitea of [
      7,
      {},
      { secret_file: "" },
      { secret_file: "/s", approvers: "bob" },
      { secret_file: "/s", label: "" },
    ])
      expect(codeOf(() => giteaSettings({ pit: { gitea } }, "c"))).toBe("CONFIG_INVALID");
  });
});

describe("the webhook over HTTP", () => {
  let server: TestServer;
  let secretFile: string;
  const place = createPlace();
  beforeAll(async () => {
    secretFile = join(place.directory, "secret");
    writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
    const webhooks: Record<string, WebhookHandler> = {};
    server = await startTestServer({ webhooks: webhooks });
    webhooks.gitea = createGiteaWebhook({
      machine: systemMachine,
      config: server.config,
      settings: { secretFile, ...RULES },
      recordEvent: (event) => server.pitContext.recordEvent(event),
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(place.directory, { recursive: true });
  });
  beforeEach(() => {
    rmSync(join(server.config.run_dir, "webhooks"), { recursive: true, force: true });
    rmSync(join(server.config.missions_root, "tidy-inbox"), { recursive: true, force: true });
  });

  const deliver = async (payload: unknown, headers: Record<string, string> = {}) => {
    const body = typeof payload === "string" ? payload : JSON.stringify(payload);
    const response = await fetch(`${server.url}/v1/webhooks/gitea`, {
      method: "POST",
      body,
      headers: {
        "x-gitea-event": "issues",
        "x-gitea-delivery": "11111111-2222",
        "x-gitea-signature": createHmac("sha256", SECRET).update(body).digest("hex"),
        ...headers,
      },
    });
    const answer = (await response.json()) as Record<string, unknown>;
    return { status: response.status, answer, code: answer.code };
  };
  const cell = () => join(server.config.missions_root, "tidy-inbox");
  const proposal = () => JSON.parse(readFileSync(join(cell(), "meta", "proposal.json"), "utf8"));

  it("creates the cell of an approved proposal with its answers, and starts no agent", async () => {
    const { status, answer } = await deliver(payloadOf(answersText(GOOD)));
    expect(status).toBe(200);
    expect(shapes.webhookAnswer.parse(answer)).toMatchObject({
      outcome: "created",
      mission_id: "tidy-inbox",
    });
    expect(proposal()).toMatchObject({
      schema: "lazarus.proposal/1",
      repository: "o/r",
      issue: 7,
      approved_by: "bob",
      answers: GOOD,
    });
    const [event] = server.pitContext.registry()!.events({ mission: "tidy-inbox", last: 1 });
    expect(event).toMatchObject({ kind: "init", data: { by: "gitea", repository: "o/r", issue: 7 } });
    expect(existsSync(join(server.config.run_dir, "agents", "tidy-inbox"))).toBe(false);
  });

  it("refuses a repeated delivery, even with another id and after the cell was removed", async () => {
    const payload = payloadOf(answersText(GOOD));
    await deliver(payload);
    const refused = { status: 409, code: "DELIVERY_REPEATED" };
    expect(await deliver(payload)).toMatchObject(refused);
    expect(await deliver(payload, { "x-gitea-delivery": "another" })).toMatchObject(refused);
    rmSync(cell(), { recursive: true });
    expect(await deliver(payload)).toMatchObject(refused);
    expect(existsSync(cell())).toBe(false);
  });

  it("ignores later labels on an issue that became a mission", async () => {
    await deliver(payloadOf(answersText(GOOD)));
    const later = payloadOf(
      answersText(GOOD),
      {},
      { labels: [{ name: "mission-approved" }, { name: "fun" }] },
    );
    expect(await deliver(later, { "x-gitea-delivery": "later" })).toMatchObject({
      status: 200,
      answer: { outcome: "ignored" },
    });
  });

  it("creates one cell for two concurrent deliveries", async () => {
    const payload = payloadOf(answersText(GOOD));
    const both = await Promise.all([
      deliver(payload, { "x-gitea-delivery": "a" }),
      deliver(payload, { "x-gitea-delivery": "b" }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  it("finishes what a killed delivery started", async () => {
    const payload = payloadOf(answersText(GOOD));
    await deliver(payload);
    const directory = join(server.config.run_dir, "webhooks");
    const [name] = readdirSync(directory);
    const claim = JSON.parse(readFileSync(join(directory, name!), "utf8"));
    // As after a kill between the cell and its proposal.
    writeFileSync(join(directory, name!), JSON.stringify({ ...claim, state: "begun" }));
    rmSync(join(cell(), "meta", "proposal.json"));
    expect(await deliver(payload)).toMatchObject({ status: 200, answer: { outcome: "created" } });
    expect(proposal().answers).toEqual(GOOD);
    expect(await deliver(payload)).toMatchObject({ status: 409 });
  });

  /** Sends signed deliveries about one issue, in order; returns the outcome of each. */
  const history = async (...deliveries: readonly Record<string, unknown>[]) => {
    const outcomes: unknown[] = [];
    for (const [n, payload] of deliveries.entries()) {
      const { answer } = await deliver(payload, { "x-gitea-delivery": `d${n}` });
      outcomes.push(answer.outcome ?? answer.code);
    }
    return outcomes;
  };
  const APPROVED = { name: "mission-approved" };
  const FUN = { name: "fun" };
  const by = (login: string, more: object = {}) => ({ sender: { login }, ...more });
  const added = (...labels: object[]) => ({ changes: { added_labels: labels, removed_labels: null } });
  const text = answersText(GOOD);
  const edited = answersText({ ...GOOD, mission: "tidy-inbox", goal: "Delete everything." });

  it.each<[string, object, object, object]>([
    ["a forge that names the changed label", added(APPROVED), added(FUN), added(APPROVED)],
    ["a forge that does not", {}, {}, {}],
  ])("ignores a label of the proposer until an approver sets it, on %s", async (_, first, other, last) => {
    expect(
      await history(
        payloadOf(text, by("ann", first)),
        // The approver adds another label; the issue still has that of the proposer.
        payloadOf(text, by("bob", other), { labels: [APPROVED, FUN] }),
        payloadOf(text, by("bob", { action: "label_cleared" }), { labels: [] }),
        payloadOf(text, by("ann", first)),
        payloadOf(text, by("bob", { action: "label_updated" }), { labels: [FUN] }),
        payloadOf(text, by("bob", last)),
      ),
    ).toEqual(["ignored", "ignored", "ignored", "ignored", "ignored", "created"]);
    expect(proposal()).toMatchObject({ author: "ann", approved_by: "bob", answers: GOOD });
  });

  it("ignores an issue that was opened with the label", async () => {
    expect(
      await history(
        payloadOf(text, by("ann", { action: "opened" })),
        payloadOf(text, by("bob"), { labels: [APPROVED, FUN] }),
      ),
    ).toEqual(["ignored", "ignored"]);
    expect(existsSync(cell())).toBe(false);
  });

  it("an edit after the approval voids it, whether or not the edit itself was delivered", async () => {
    for (const edit of [[payloadOf(edited, by("ann", { action: "edited" }))], []]) {
      // Approved, but the cell cannot be created yet.
      mkdirSync(cell(), { recursive: true });
      const [first] = await history(payloadOf(text, by("bob")));
      expect(first).toBe("MISSION_EXISTS");
      rmSync(cell(), { recursive: true });
      const later = [...edit, payloadOf(edited, by("bob"), { labels: [APPROVED, FUN] })];
      expect(await history(...later)).toEqual(later.map(() => "ignored"));
      expect(existsSync(cell())).toBe(false);
      // A new approval is for the new text.
      expect(await history(payloadOf(edited, by("bob", added(APPROVED))))).toEqual(["created"]);
      expect(proposal().answers.goal).toBe("Delete everything.");
      rmSync(cell(), { recursive: true });
      rmSync(join(server.config.run_dir, "webhooks"), { recursive: true });
    }
  });

  it("does not finish a killed delivery with an edited text", async () => {
    await history(payloadOf(text, by("bob")));
    const directory = join(server.config.run_dir, "webhooks");
    const [name] = readdirSync(directory);
    const record = JSON.parse(readFileSync(join(directory, name!), "utf8"));
    writeFileSync(join(directory, name!), JSON.stringify({ ...record, state: "begun" }));
    rmSync(cell(), { recursive: true });
    const later = payloadOf(edited, by("bob"), { labels: [APPROVED, FUN] });
    expect(await history(later)).toEqual(["ignored"]);
    expect(existsSync(cell())).toBe(false);
  });

  it("a claim of an earlier version is respected", async () => {
    await history(payloadOf(text, by("bob")));
    const directory = join(server.config.run_dir, "webhooks");
    const [name] = readdirSync(directory);
    const { claim } = JSON.parse(readFileSync(join(directory, name!), "utf8"));
    writeFileSync(
      join(directory, name!),
      JSON.stringify({ state: "made", repository: "o/r", issue: 7, ...claim }),
    );
    rmSync(cell(), { recursive: true });
    expect(await history(payloadOf(text, by("bob", added(APPROVED))))).toEqual(["DELIVERY_REPEATED"]);
  });

  it("does not touch an existing cell of another origin", async () => {
    mkdirSync(join(cell(), "worktree"), { recursive: true });
    writeFileSync(join(cell(), "worktree", "work"), "mine");
    expect(await deliver(payloadOf(answersText(GOOD)))).toMatchObject({
      status: 409,
      code: "MISSION_EXISTS",
    });
    expect(readdirSync(cell())).toEqual(["worktree"]);
  });

  it.each<[string, unknown, Record<string, string>, number, string]>([
    ["a bad signature", payloadOf("x"), { "x-gitea-signature": "0".repeat(64) }, 401, "SIGNATURE_REFUSED"],
    ["a body that is not JSON", "hello", {}, 400, "BODY_INVALID"],
    ["a list", "[]", {}, 400, "BODY_INVALID"],
    ["an invalid delivery id", payloadOf("x"), { "x-gitea-delivery": "../x" }, 400, "BODY_INVALID"],
    ["a proposal that does not match the form", payloadOf("please do it"), {}, 422, "PROPOSAL_INVALID"],
    [
      "a mission id with ..",
      payloadOf(answersText({ ...GOOD, mission: "../x" })),
      {},
      400,
      "MISSION_ID_INVALID",
    ],
    ["a body too large", "x".repeat(1024 * 1024 + 1), {}, 413, "BODY_TOO_LARGE"],
  ])("refuses %s and creates nothing", async (_, payload, headers, status, code) => {
    expect(await deliver(payload, headers)).toMatchObject({ status, code });
    expect(existsSync(cell())).toBe(false);
  });

  it("is refused if the secret is missing, short, or readable by others", async () => {
    chmodSync(secretFile, 0o644);
    expect((await deliver(payloadOf("x"))).code).toBe("TOKEN_EXPOSED");
    chmodSync(secretFile, 0o600);
    writeFileSync(secretFile, "short");
    expect((await deliver(payloadOf("x"))).code).toBe("CONFIG_INVALID");
    rmSync(secretFile);
    expect((await deliver(payloadOf("x"))).code).toBe("NOT_FOUND");
    writeFileSync(secretFile, SECRET, { mode: 0o600 });
  });

  it("another webhook, or a prototype name, is not configured", async () => {
    for (const name of ["github", "constructor", "__proto__"]) {
      const response = await fetch(`${server.url}/v1/webhooks/${name}`, { method: "POST", body: "{}" });
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
        404,
        "WEBHOOK_OFF",
      ]);
    }
  });
});

describe("gitea install-template", () => {
  it("writes the form, updates its own file, and leaves a foreign file alone", () => {
    using world = createWorld();
    const install = (...words: string[]) => world.run(["gitea", "install-template", ".", ...words]);
    expect(install("--dry-run").stdout).toContain("would write");
    expect(existsSync(join(world.cwd, ".gitea"))).toBe(false);
    expect(install().exit).toBe(0);
    const path = join(world.cwd, ".gitea", "ISSUE_TEMPLATE", "mission-proposal.yaml");
    expect(parse(readFileSync(path, "utf8")).name).toBe("Mission proposal");
    expect(install().stdout).toContain("is up to date");
    expect(install("--label", "go").stdout).toContain("wrote");
    writeFileSync(path, "name: mine\n");
    expect(install().stdout).toContain("was not changed");
    expect(readFileSync(path, "utf8")).toBe("name: mine\n");
    expect(install("--forgejo").exit).toBe(0);
    expect(existsSync(join(world.cwd, ".forgejo", "ISSUE_TEMPLATE", "mission-proposal.yaml"))).toBe(true);
    expect(world.run(["gitea", "install-template", "nowhere"]).exit).toBe(6);
  });
});
