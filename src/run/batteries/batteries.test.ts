import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemDisk } from "../../platform/disk.ts";
import { createSimulatedMachine } from "../../testing/simulated-machine.ts";
import type { RunInfo } from "../model/types.ts";
import { createBudget, judgeBudget, loadPersonas, loadSkills, openAuditLog } from "./index.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-batteries-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const info = (runId: string, parentRunId: string | null = null, callerId: string | null = "me") =>
  ({ runId, parentRunId, callerId }) as RunInfo;

describe("audit", () => {
  test("numbers events per run, keeps the chain of parents, and refuses changes", async () => {
    const path = join(directory, "audit.db");
    using log = openAuditLog(path, createSimulatedMachine({ disk: systemDisk }));
    await log.record(info("root"), { kind: "begin", step: 0, data: {} });
    const token = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
    await Promise.all([
      log.record(info("child", "root"), { kind: "begin", step: 0, data: {} }),
      log.record(info("child", "root"), { kind: "step", step: 1, data: { text: token } }),
      log.record(info("child", "root"), { kind: "end", step: 1, data: {} }),
    ]);
    expect(log.read("child").map(({ sequence, kind }) => [sequence, kind])).toEqual([
      [1, "begin"],
      [2, "step"],
      [3, "end"],
    ]);
    expect(JSON.stringify(log.read("child"))).not.toContain(token);
    expect(log.ancestors("child")).toEqual(["child", "root"]);
    const { DatabaseSync } = await import("node:sqlite");
    const other = new DatabaseSync(path);
    expect(() => other.exec("DELETE FROM event")).toThrow(/append-only/);
    expect(() => other.exec("UPDATE event SET kind = 'x'")).toThrow(/append-only/);
    other.close();
  });
});

describe("budget", () => {
  test("ignores spendings outside the window", async () => {
    const { clock } = createSimulatedMachine({ disk: systemDisk });
    const budget = createBudget({ windowMs: 1000, tokens: 100 }, undefined, clock);
    await budget.commit(info("r"), { runtimeMs: 5, usage: { inputTokens: 90, outputTokens: 10 } });
    expect(await budget.check(info("r"))).toContain("100 of 100 tokens");
    expect(await budget.check(info("r", null, "another"))).toBeUndefined();
    await clock.advance(1000);
    expect(await budget.check(info("r"))).toBeUndefined();
  });
  test("limits runtime too; without limits nothing is refused", () => {
    const spent = [{ callerId: "me", atMs: 10, runtimeMs: 60, tokens: 1 }];
    expect(judgeBudget(spent, { windowMs: 100, runtimeMs: 60 }, 50)).toContain("runtime");
    expect(judgeBudget(spent, { windowMs: 100 }, 50)).toBeUndefined();
  });
});

describe("personas", () => {
  const tools = { look: { inputSchema: {} as never, execute: () => 1 } };
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text);
  test("are read from files; a missing directory has none", () => {
    expect(loadPersonas(join(directory, "none")).size).toBe(0);
    write(
      "a.md",
      "---\nname: scout\ndescription: looks\ntools: [look]\nmax_iterations: 3\nmodel: fast\n---\nLook around.\n",
    );
    write("notes.txt", "not a persona");
    const scout = loadPersonas(directory, tools).get("scout");
    expect(scout).toMatchObject({
      description: "looks",
      agent: { id: "scout", instructions: "Look around.", maxIterations: 3, modelTier: "fast" },
    });
  });
  test.each([
    ["no front matter", "hello", /no front matter/],
    ["broken front matter", "---\n{: [\n---\n", /YAML/],
    ["an unavailable tool", "---\nname: x\ntools: [fly]\n---\n", /fly/],
    ["an invalid name", "---\nname: Scout Master\n---\n", /Scout Master.*not a valid agent name/],
    ["an invalid limit", "---\nname: x\nmax_iterations: -1\n---\n", /max_iterations/],
  ])("with %s are refused, naming the file", (_, text, says) => {
    write("x.md", text);
    expect(() => loadPersonas(directory, tools)).toThrow(says);
  });
});

describe("skills", () => {
  const skill = (name: string, head: string) => {
    mkdirSync(join(directory, name));
    writeFileSync(join(directory, name, "SKILL.md"), head);
  };
  test("give a prompt and a tool that reads them; a missing directory gives none", async () => {
    expect(await loadSkills(join(directory, "none"))).toEqual({ skills: [], prompt: "", tools: {} });
    skill("pdf", "---\nname: pdf\ndescription: reads PDF files\n---\nHow to use it.");
    writeFileSync(join(directory, "pdf", "more.md"), "more");
    const { prompt, tools } = await loadSkills(directory);
    expect(prompt).toContain("- pdf: reads PDF files");
    const open = (file?: string) => tools.open_skill!.execute({ skill: "pdf", file }, {} as never);
    expect(open()).toContain("How to use it.");
    expect(open("more.md")).toBe("more");
  });
  test("never open a file outside their directory", async () => {
    skill("pdf", "---\nname: pdf\ndescription: d\n---\n");
    writeFileSync(join(directory, "secret"), "s");
    symlinkSync(join(directory, "secret"), join(directory, "pdf", "link"));
    const { tools } = await loadSkills(directory);
    for (const file of ["../secret", "/etc/passwd", "link", ".", "none"]) {
      expect(() => tools.open_skill!.execute({ skill: "pdf", file }, {} as never)).toThrow(/no file/);
    }
  });
  test("without a description are refused", async () => {
    skill("bad", "---\nname: bad\n---\n");
    await expect(loadSkills(directory)).rejects.toMatchObject({ code: "SKILL_INVALID" });
  });
});
