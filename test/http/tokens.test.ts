// Tokens with scopes: what each may do is enforced from the route table, for every route.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Grant, refuseBeyondGrant } from "../../src/http/request-checks.ts";
import type { Route } from "../../src/http/route.ts";
import { ROUTES } from "../../src/http/routes.ts";
import { createToken, createTokenCheck, listTokens, revokeToken } from "../../src/http/tokens.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { createWorld } from "../cli/hermetic.ts";
import { createPlace, startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
const tokens: Record<string, string> = {};
beforeAll(async () => {
  server = await startTestServer({ missions: ["m1", "m2"] });
  const create = async (name: string, grant: Grant) => {
    tokens[name] = await createToken(systemMachine, server.config.run_dir, {
      name,
      ...grant,
      expiresMs: null,
    });
  };
  await create("reader", { scope: "read", mission: null });
  await create("operator", { scope: "operate", mission: null });
  await create("reader-m1", { scope: "read", mission: "m1" });
  await create("operator-m1", { scope: "operate", mission: "m1" });
  tokens.full = server.token;
});
afterAll(() => server[Symbol.asyncDispose]());

async function ask(token: string, method: string, path: string): Promise<[number, string | undefined]> {
  const closing = new AbortController();
  const response = await fetch(server.url + path, {
    method: method.toUpperCase(),
    headers: { authorization: `Bearer ${tokens[token]}` },
    signal: closing.signal,
  });
  const isStream = response.headers.get("content-type") === "text/event-stream";
  const { code } = isStream || response.ok ? {} : ((await response.json()) as { code?: string });
  closing.abort();
  return [response.status, code];
}

/** Whether a token passes the check of the route, regardless of the handler's response. */
async function isAllowed(token: string, route: Route, mission: string): Promise<boolean> {
  const [, code] = await ask(token, route.method, route.path.replace("{mission}", mission));
  return code !== "SCOPE_REFUSED" && code !== "TOKEN_REFUSED";
}

const protectedRoutes = ROUTES.filter(({ scope }) => scope === "read" || scope === "operate");

describe.each(protectedRoutes.map((route) => [`${route.method} ${route.path}`, route] as const))(
  "%s",
  (_, route) => {
    const aboutMission = route.path.includes("{mission}");
    it.each([
      ["full", true, true],
      ["operator", true, true],
      ["reader", route.scope === "read", route.scope === "read"],
      ["operator-m1", aboutMission, false],
      ["reader-m1", aboutMission && route.scope === "read", false],
    ] as const)("is allowed for %s: %s for its mission, %s for another", async (token, own, other) => {
      expect(await isAllowed(token, route, "m1")).toBe(own);
      expect(await isAllowed(token, route, "m2")).toBe(other);
    });
  },
);

it("every route that changes something needs the scope operate", () => {
  expect(ROUTES.filter(({ method, scope }) => method === "post" && scope === "read")).toEqual([]);
});

it("a token for one mission may follow the events of that mission, and no others", async () => {
  expect(await ask("reader-m1", "get", "/v1/events?mission=m1")).toEqual([200, undefined]);
  for (const query of ["", "?mission=m2", "?mission=m2&mission=m1", "?mission="])
    expect(await ask("reader-m1", "get", `/v1/events${query}`)).toEqual([403, "SCOPE_REFUSED"]);
  expect(await ask("reader-m1", "get", "/v1/missions/%6d1")).toEqual([200, undefined]);
  expect(await ask("reader-m1", "get", "/v1/missions/%6d2")).toEqual([403, "SCOPE_REFUSED"]);
});

it("a revoked token is refused with the next request, an expired one by the clock", async () => {
  const { run_dir: runDir } = server.config;
  tokens.brief = await createToken(systemMachine, runDir, {
    name: "brief",
    scope: "read",
    mission: null,
    expiresMs: null,
  });
  expect(await ask("brief", "get", "/v1/missions")).toEqual([200, undefined]);
  await revokeToken(systemMachine, runDir, "brief");
  expect(await ask("brief", "get", "/v1/missions")).toEqual([401, "TOKEN_REFUSED"]);

  const { directory } = createPlace();
  const machine = createSimulatedMachine({ disk: systemMachine.disk, startMs: 1_000_000 });
  const token = await createToken(machine, directory, {
    name: "short",
    scope: "read",
    mission: null,
    expiresMs: 1_060_000,
  });
  const grantOf = createTokenCheck(machine, directory, "full");
  expect(grantOf(token)).toMatchObject({ scope: "read", mission: null });
  await machine.clock.advance(60_000);
  expect(grantOf(token)).toBeUndefined();
  expect(listTokens(machine, directory)).toMatchObject([
    { name: "short", expired: true, created_ms: 1_000_000, last_used_ms: 1_000_000 },
  ]);
});

it("only digests are stored, readable by their owner alone, and when a token was used", async () => {
  const { run_dir: runDir } = server.config;
  const file = join(runDir, "tokens.json");
  const stored = readFileSync(file, "utf8") + readFileSync(join(runDir, "tokens-used.json"), "utf8");
  for (const token of Object.values(tokens)) expect(stored).not.toContain(token);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const listed = listTokens(systemMachine, runDir);
  expect(listed.map(({ name }) => name)).toEqual(["reader", "operator", "reader-m1", "operator-m1"]);
  expect(listed.every(({ last_used_ms: ms }) => ms !== null)).toBe(true);
  expect(JSON.stringify(listed)).not.toContain("sha256");
});

it("a damaged or exposed list is an error, and nothing is accepted or overwritten", async () => {
  const { directory } = createPlace();
  const wanted = { name: "a", scope: "operate", mission: null, expiresMs: null } as const;
  const token = await createToken(systemMachine, directory, wanted);
  const file = join(directory, "tokens.json");
  const content = readFileSync(file, "utf8");
  for (const damage of ["{", '{"format":2,"tokens":[]}', '{"format":1,"tokens":[{"name":"a"}]}']) {
    writeFileSync(file, damage);
    expect(() => createTokenCheck(systemMachine, directory, "full")(token)).toThrow(LazarusError);
    await expect(createToken(systemMachine, directory, { ...wanted, name: "b" })).rejects.toThrow(
      LazarusError,
    );
    expect(readFileSync(file, "utf8")).toBe(damage);
  }
  writeFileSync(file, content);
  expect(createTokenCheck(systemMachine, directory, "full")("full")).toEqual({
    scope: "operate",
    mission: null,
  });
});

it("concurrent creations lose nothing", async () => {
  const { directory } = createPlace();
  const names = Array.from({ length: 8 }, (_, n) => `t${n}`);
  const create = (name: string) =>
    createToken(systemMachine, directory, { name, scope: "read", mission: null, expiresMs: null });
  await Promise.all(names.map(create));
  expect(
    listTokens(systemMachine, directory)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(names);
  await expect(create("t0")).rejects.toMatchObject({ code: "TOKEN_EXISTS" });
  await expect(revokeToken(systemMachine, directory, "other")).rejects.toMatchObject({
    code: "TOKEN_UNKNOWN",
  });
  for (const bad of ["", "a b", "../x", "-x", "x".repeat(65)])
    await expect(create(bad)).rejects.toMatchObject({ code: "USAGE" });
});

it.each<[Grant | undefined, Grant["scope"], string | undefined, string | undefined]>([
  [undefined, "read", undefined, "TOKEN_REFUSED"],
  [{ scope: "read", mission: null }, "read", undefined, undefined],
  [{ scope: "read", mission: null }, "operate", "m1", "SCOPE_REFUSED"],
  [{ scope: "operate", mission: "m1" }, "read", "m1", undefined],
  [{ scope: "operate", mission: "m1" }, "operate", undefined, "SCOPE_REFUSED"],
  [{ scope: "operate", mission: "m1" }, "operate", "M1", "SCOPE_REFUSED"],
])("%j and a request for %s of %s: %s", (grant, scope, mission, expected) => {
  let code: string | undefined;
  try {
    refuseBeyondGrant("Bearer x", () => grant, { scope, mission });
  } catch (error) {
    code = (error as LazarusError).code;
  }
  expect(code).toBe(expected);
});

it("lazarus token create, list and revoke", async () => {
  using world = createWorld();
  const run = (line: string) => world.call(line.split(" "));
  expect((await run("token list")).stderr).toContain("no tokens yet");
  const created = await run("token create ci --scope operate --mission m1 --expires-days 30");
  expect(created).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^lzt_[\w-]{43}\n$/) });
  expect(created.stderr).toMatch(
    /^operate for m1 until .+; it is not shown again\n.*lazarus token revoke ci\n$/,
  );
  expect(JSON.parse((await run("token create grafana --json")).stdout)).toMatchObject({
    schema: "lazarus.token/1",
    name: "grafana",
    scope: "read",
    mission: null,
    expires_ms: null,
  });
  const list = await run("token list");
  expect(list.stdout).toMatch(
    /^name +scope +mission +created +last used +expires *\nci +operate +m1 .+never/,
  );
  expect(list.stdout + list.stderr).not.toContain(created.stdout.trim());
  const { tokens: listed } = JSON.parse((await run("token list --json")).stdout);
  expect(listed).toMatchObject([
    { name: "ci", scope: "operate" },
    { name: "grafana", last_used_ms: null },
  ]);
  expect((await run("token create ci")).exit).toBe(7);
  for (const days of ["0", "-1", "1e9"])
    expect((await run(`token create x --expires-days ${days}`)).exit, days).toBe(2);
  expect((await run("token create x --mission ../y")).exit).toBe(2);
  expect((await run("token revoke ci")).exit).toBe(0);
  expect((await run("token revoke ci")).exit).toBe(6);
  expect(world.run(["token", "create", "mine"], { env: { LAZARUS_EPOCH: "1" } }).exit).toBe(2);
});
