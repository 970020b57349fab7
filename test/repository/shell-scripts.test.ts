import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { ROOT } from "./files.ts";

it.for(["src/pit/start/keeper.sh", "scripts/install-tools.sh", ".ci/run"])(
  "shellcheck accepts %s",
  (path, { skip }) => {
    const { error, status, stdout } = spawnSync("shellcheck", ["--severity=warning", path], {
      cwd: ROOT,
      encoding: "utf8",
    });
    if (error !== undefined) skip("shellcheck is not installed");
    expect(status, stdout).toBe(0);
  },
);
