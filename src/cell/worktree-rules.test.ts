import { describe, expect, it } from "vitest";
import { isMissionId } from "./mission-id.ts";
import { nameMission, refuseWorktree } from "./worktree-rules.ts";

const around = {
  home: "/users/ada",
  own: ["/users/ada/.local/share/lazarus"],
  others: [{ mission: "app", path: "/users/ada/src/app" }],
};

describe("a directory as worktree", () => {
  it.each([
    ["/", "root of the file system"],
    ["/proc", "belong to the kernel"],
    ["/sys/fs/cgroup", "belong to the kernel"],
    ["/dev", "belong to the kernel"],
    ["/users/ada", "your home directory"],
    ["/users", "contains your home directory"],
    ["/users/ada/.local", "contains /users/ada/.local/share/lazarus"],
    ["/users/ada/.local/share/lazarus/missions/x", "keeps its own files in"],
    ["/users/ada/src", "contains /users/ada/src/app, the worktree of app"],
    ["/users/ada/src/app", "is the worktree of app"],
    ["/users/ada/src/app/web", "is inside /users/ada/src/app, the worktree of app"],
  ])("refuses %s: %s", (path, reason) => {
    const refusal = refuseWorktree(path, around);
    expect(refusal?.reason).toContain(reason);
    expect(refusal?.hint).not.toBe("");
  });

  it.each(["/users/ada/src/app2", "/users/ada/notes", "/srv/work", "/dev/shm/work"])("accepts %s", (path) => {
    expect(refuseWorktree(path, around)).toBeUndefined();
  });
});

describe("the name of a mission", () => {
  it.each([
    ["/src/app", "app"],
    ["/src/My Project (2)", "My-Project-2"],
    ["/src/.dotfiles", "dotfiles"],
    ["/src/a..b", "a.b"],
    ["/src/日本", "worktree"],
    [`/src/${"x".repeat(200)}`, "x".repeat(100)],
  ])("of %s", (path, expected) => {
    const name = nameMission(path, () => false);
    expect(name).toBe(expected);
    expect(isMissionId(name)).toBe(true);
  });

  it("has a number when it is taken", () => {
    expect(nameMission("/src/app", (id) => id === "app" || id === "app-2")).toBe("app-3");
  });
});
