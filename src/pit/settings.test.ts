import { describe, expect, test } from "vitest";
import { checkPitSettings, type Grants, grantedValues, toSettings } from "./settings.ts";

const granted = (pit: object, grants?: Partial<Grants>) =>
  grantedValues(
    { pit },
    "/etc/c.json",
    grants && { mission: "m", agent: "claude", settings: {}, revive: null, stall_seconds: null, ...grants },
  );

describe("settings of the pit", () => {
  test("have defaults", () => {
    expect(toSettings(grantedValues({}, undefined))).toMatchObject({
      revive: "ask",
      stallSeconds: null,
      checkpointEverySeconds: null,
      limits: { maxRevivalsPerHour: 5, maxAgeMs: 86_400_000, permanentExitCodes: [78] },
    });
  });
  test("options of run override those of the mission, then of its agent, then the section", () => {
    const pit = { revive: "no", grace_seconds: 3, agents: { claude: { revive: "yes", stall_seconds: 60 } } };
    expect(granted(pit)).toMatchObject({ revive: "no", stall_seconds: null });
    expect(granted(pit, {})).toMatchObject({ revive: "yes", stall_seconds: 60, grace_seconds: 3 });
    const settings = { revive: "ask", stall_seconds: null };
    expect(granted(pit, { settings })).toMatchObject({ revive: "ask", stall_seconds: null });
    expect(granted(pit, { settings, revive: "substitute", stall_seconds: 5 })).toMatchObject({
      revive: "substitute",
      stall_seconds: 5,
      grace_seconds: 3,
    });
  });
  test.each([
    [{ revive: "maybe" }, "/etc/c.json: pit.revive is not one of yes, no, ask, substitute"],
    [{ backoff_seconds: "5" }, "pit.backoff_seconds is not a list of numbers"],
    [{ stall_seconds: 0 }, "pit.stall_seconds is not a number of seconds above 0, or null"],
    [{ alike_crashes_per_step: 0 }, "pit.alike_crashes_per_step is not a whole number above 0"],
    [{ quota_patterns: ["("] }, "pit.quota_patterns is not a list of regular expressions"],
    [{ agents: [] }, "pit.agents is not an object"],
    [{ grace_seconds: -1 }, "pit.grace_seconds is not a number, 0 or more"],
  ])("name file and key of a wrong value: %o", (pit, message) => {
    expect(() => granted(pit)).toThrow(message);
  });
  test("ignore the removed key jitter as any unknown key", () => {
    expect(granted({ jitter: 1.5 })).toEqual(granted({}));
    expect(checkPitSettings({ pit: { jitter: 0.5 } }, "c")).toEqual([
      'c: pit: unknown key "jitter" is not used',
    ]);
  });
  test("are checked as a whole: every agent's, and unknown keys are reported", () => {
    const pit = { revive: "yes", http_port: 1, gitea: {}, agents: { claude: { stal_seconds: 5 } }, retry: 1 };
    expect(checkPitSettings({ pit }, "c")).toEqual([
      'c: pit: unknown key "retry" is not used',
      'c: pit.agents.claude: unknown key "stal_seconds" is not used',
    ]);
    expect(() => checkPitSettings({ pit: { agents: { claude: { revive: 1 } } } }, "c")).toThrow(
      "pit.agents.claude.revive",
    );
    expect(checkPitSettings({}, undefined)).toEqual([]);
  });
});
