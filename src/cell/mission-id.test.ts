// docs/cells.md, "Mission ids": which ids are valid, and that none leads out of the missions root.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LazarusError } from "../platform/errors.ts";
import { cellRoot, isMissionId, parseMissionId, refuseOutside } from "./mission-id.ts";

let directory: string;
let missions: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-id-"));
  missions = join(directory, "missions");
  mkdirSync(missions);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const first = fc.constantFrom(...LETTERS_AND_DIGITS);
const next = fc.constantFrom(...LETTERS_AND_DIGITS, ".", "_", "-");
const goodId = fc
  .tuple(first, fc.array(next, { maxLength: 127 }))
  .map(([head, tail]) => head + tail.join(""))
  .filter((id) => !id.includes(".."));

describe("a mission id", () => {
  it("is 1 to 128 of A–Z a–z 0–9 . _ -, starting with a letter or digit", () => {
    fc.assert(fc.property(goodId, (id) => parseMissionId(id) === id));
    expect(isMissionId("a".repeat(128))).toBe(true);
    expect(isMissionId("a".repeat(129))).toBe(false);
    expect(isMissionId("0198c0de-7a5e-7000-8000-00000000beef"), "a UUID").toBe(true);
  });

  it.each([
    ["nothing", ""],
    ["two dots", ".."],
    ["two dots inside", "a..b"],
    ["a slash", "a/b"],
    ["a way up", "../etc"],
    ["an absolute path", "/etc/passwd"],
    ["a backslash", "a\\b"],
    ["a leading dot", ".hidden"],
    ["a leading dash", "-rf"],
    ["a leading underscore", "_x"],
    ["a space", "a b"],
    ["a newline at the end", "a\n"],
    ["a NUL", "a\0b"],
    ["a terminal escape", "\x1b[2Ja"],
    ["letters that only look Latin", "аbc"],
    ["a shell substitution", "$(id)"],
    ["a full-width dot", "a．．b"],
  ])("is never %s", (_, text) => {
    expect(isMissionId(text)).toBe(false);
    expect(() => parseMissionId(text)).toThrow(expect.objectContaining({ code: "MISSION_ID_INVALID" }));
  });

  it("is refused for any other text, and every accepted id stays below the root", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.string(), goodId), (text) => {
        if (isMissionId(text)) expect(resolve("/root-of-all", text)).toBe(`/root-of-all/${text}`);
        else expect(() => parseMissionId(text)).toThrow(LazarusError);
      }),
    );
  });

  it("is printed without control characters and truncated when refused", () => {
    expect(() => parseMissionId("\x1b[31mred")).toThrow('"\\u001b[31mred" is not a valid mission id');
    const caught = (() => {
      try {
        return parseMissionId("x".repeat(100_000));
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(caught.length).toBeLessThan(200);
  });
});

describe("the directory of a mission", () => {
  it("is below the root, whether it exists or not", () => {
    expect(cellRoot(missions, parseMissionId("m1"))).toBe(join(missions, "m1"));
    expect(cellRoot(join(directory, "no-root-yet"), parseMissionId("m1"))).toBe(
      join(directory, "no-root-yet", "m1"),
    );
  });

  it("may be a link to another place below the root", () => {
    mkdirSync(join(missions, "real"));
    symlinkSync("real", join(missions, "alias"));
    expect(cellRoot(missions, parseMissionId("alias"))).toBe(join(missions, "alias"));
  });

  it.each([
    ["leads outside", "../elsewhere", /a link that leads outside, to .*elsewhere/],
    ["leads to the root itself", ".", /leads outside/],
    ["dangles", "../nowhere", /a dangling link/],
    ["is circular", "m1", /a circular link/],
  ])("is refused when it is a link that %s", (_, target, message) => {
    mkdirSync(join(directory, "elsewhere"));
    symlinkSync(target, join(missions, "m1"));
    const look = () => cellRoot(missions, parseMissionId("m1"));
    expect(look).toThrow(message);
    expect(look).toThrow(expect.objectContaining({ code: "MISSION_OUTSIDE_ROOT" }));
  });

  it("distinguishes a sibling whose name starts like the root's", () => {
    mkdirSync(`${missions}-evil`);
    symlinkSync(`${missions}-evil`, join(missions, "m1"));
    expect(() => cellRoot(missions, parseMissionId("m1"))).toThrow(/leads outside/);
  });

  it("follows a root that is itself a link", () => {
    symlinkSync(missions, join(directory, "link"));
    mkdirSync(join(missions, "m1"));
    expect(cellRoot(join(directory, "link"), parseMissionId("m1"))).toBe(join(directory, "link", "m1"));
  });

  it("leaves a root that is a file to the system's own error", () => {
    writeFileSync(join(directory, "file"), "");
    expect(cellRoot(join(directory, "file"), parseMissionId("m1"))).toBe(join(directory, "file", "m1"));
  });
});

describe("a directory of a cell", () => {
  it("is not written to when it is a link out of the cell", () => {
    mkdirSync(join(missions, "m1"));
    symlinkSync(directory, join(missions, "m1", "state"));
    expect(() => refuseOutside(join(missions, "m1"), join(missions, "m1", "state"))).toThrow(
      expect.objectContaining({ code: "CELL_DAMAGED" }),
    );
    expect(() => refuseOutside(join(missions, "m1"), join(missions, "m1", "logs"))).not.toThrow();
  });
});
