import { expect, test } from "vitest";
import { DEFAULT_SECRETS, readSettings } from "./settings.ts";

test("an invalid setting is reported with its key and the file that contains it", () => {
  for (const [document, key] of [
    [{ snapshot: 5 }, "snapshot"],
    [{ snapshot: { compression: "lzma" } }, "snapshot.compression"],
    [{ snapshot: { exclude: "node_modules" } }, "snapshot.exclude"],
    [{ secrets: { patterns: [1] } }, "secrets.patterns"],
    [{ retention: { keep_last: -1 } }, "retention.keep_last"],
    [{ retention: { keep_daily: 1.5 } }, "retention.keep_daily"],
    [{ retention: { auto: "yes" } }, "retention.auto"],
  ] as const) {
    const reading = () => readSettings(document as never, "/etc/lazarus.json");
    expect(reading).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(reading).toThrow(`/etc/lazarus.json: ${key} is not`);
  }
  expect(readSettings({}, undefined)).toMatchObject({
    compression: "gzip",
    autoPrune: true,
    secrets: DEFAULT_SECRETS,
  });
});
