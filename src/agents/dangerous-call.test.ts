import { describe, expect, it } from "vitest";
import { isDangerous } from "./dangerous-call.ts";

const call = (command: string | null) => ({ id: null, tool: "bash", summary: "", command });

describe("a live point is taken before", () => {
  it.each([
    "rm -rf build",
    "cd app && rm -fr .",
    "rm --recursive x",
    "git reset --hard HEAD~3",
    "git -C app clean -fdx",
    "git checkout -- .",
    "git stash",
    "find . -name '*.o' -delete",
    "rsync -a --delete a/ b/",
    "dd if=/dev/zero of=disk.img",
    "sed -i s/a/b/ *.ts",
  ])("%s", (command) => {
    expect(isDangerous({ kind: "tool-start", call: call(command) })).toBe(true);
  });

  it.each(["ls -la", "npm run build", "git status", "git commit -m 'rm'", "grep -r form .", "cat farm -r"])(
    "not before %s",
    (command) => {
      expect(isDangerous({ kind: "tool-start", call: call(command) })).toBe(false);
    },
  );

  it("not when the call ends, and not before other tools", () => {
    expect(isDangerous({ kind: "tool-end", call: call("rm -rf build") })).toBe(false);
    expect(isDangerous({ kind: "tool-start", call: call(null) })).toBe(false);
  });
});
