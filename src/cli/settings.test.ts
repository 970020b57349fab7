import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { resolveConfig } from "../cell/config.ts";
import { listSettings, SECRET } from "./settings.ts";
import { settingsPage } from "./settings-page.ts";

const list = (document: object) =>
  listSettings(
    resolveConfig({ env: { HOME: "/home/u" }, cwd: "/", isRoot: false }, "/etc/c.json", document as never),
  );
const row = (document: object, key: string) => list(document).find((each) => each.key === key);

describe("the list of settings", () => {
  test("has every key once, with a description and the allowed values", () => {
    const rows = list({});
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
    for (const { key, description, allowed, origin } of rows) {
      expect(description, key).toMatch(/\S/);
      expect(allowed, key).toMatch(/\S/);
      expect(origin, key).toBe("default");
    }
  });

  test("has every key of the base configuration", () => {
    const { config } = resolveConfig({ env: {}, cwd: "/", isRoot: false }, undefined, {});
    const keys = list({}).map(({ key }) => key);
    for (const key of Object.keys(config)) expect(keys).toContain(key);
  });

  test("shows what the file sets, and its default", () => {
    expect(row({ pit: { grace_seconds: 30 } }, "pit.grace_seconds")).toMatchObject({
      value: 30,
      origin: "/etc/c.json",
      default: 10,
    });
    expect(row({ pit: { http_port: null } }, "pit.http_port")).toMatchObject({ value: null, default: 7433 });
    expect(row({ pit: { agents: { claude: { revive: "yes" } } } }, "pit.agents.claude.revive")).toMatchObject(
      {
        value: "yes",
        default: "ask",
      },
    );
    expect(row({ missions_root: "/srv/cells" }, "missions_root")).toMatchObject({
      value: "/srv/cells",
      origin: "/etc/c.json",
    });
  });

  test("does not show secrets", () => {
    expect(row({ alerts: { webhook: "https://hooks.example/T0K3N" } }, "alerts.webhook")?.value).toBe(SECRET);
    expect(row({}, "alerts.webhook")?.value).toBeNull();
  });

  test.each([
    [{ pit: { revive: "maybe" } }, "/etc/c.json: pit.revive is not one of yes, no, ask, substitute"],
    [{ pit: { agents: { claude: { revive: 1 } } } }, "/etc/c.json: pit.agents.claude.revive is not one of"],
    [{ pit: { gitea: { label: "x" } } }, "/etc/c.json: pit.gitea.secret_file is not a path"],
    [{ pit: { http_port: 70_000 } }, "/etc/c.json: pit.http_port is not a port number"],
    [{ retention: { keep_last: -1 } }, "/etc/c.json: retention.keep_last is not a whole number, 0 or more"],
    [{ alerts: { on: ["delivery"] } }, "/etc/c.json: alerts.on is not a list of kinds of events"],
    [{ snapshot: 5 }, "/etc/c.json: snapshot is not an object"],
  ])("refuses a wrong value: %o", (document, message) => {
    expect(() => list(document)).toThrow(message);
    expect(() => list(document)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });
});

test("docs/settings.md is up to date; `npm run docs` writes it", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "settings.md"), "utf8");
  expect(page).toBe(settingsPage());
});
