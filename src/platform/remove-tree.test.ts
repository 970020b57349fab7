// Removal of trees that Lazarus made: directories that their owner may not enter, and a process without free descriptors.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

it("reports that the process has too many open files", () => {
  const root = mkdtempSync(join(tmpdir(), "lazarus-remove-"));
  try {
    mkdirSync(join(root, "tree/below"), { recursive: true });
    writeFileSync(join(root, "tree/below/file"), "");
    const script = `
      const { openSync, writeSync } = await import("node:fs");
      const { removeTree } = await import(${JSON.stringify(join(import.meta.dirname, "remove-tree.ts"))});
      try { for (;;) openSync("/dev/null", "r"); } catch {}
      try { removeTree(process.argv[1]); } catch (error) {
        writeSync(1, JSON.stringify([error.code, error.message]));
      }`;
    const { stdout, stderr } = spawnSync(
      "sh",
      [
        "-c",
        'ulimit -n 256; exec "$@"',
        "sh",
        process.execPath,
        "--input-type=module",
        "-e",
        script,
        join(root, "tree"),
      ],
      { encoding: "utf8" },
    );
    expect(stderr).toBe("");
    const [code, message] = JSON.parse(stdout);
    expect(code).toBe("TOO_MANY_FILES");
    expect(message).toContain(join(root, "tree"));
    expect(existsSync(join(root, "tree"))).toBe(true);
  } finally {
    rmSync(root, { recursive: true });
  }
});
