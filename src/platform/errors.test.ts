// The error table is a contract: scripts branch on exit codes, programs on codes.
import { describe, expect, it } from "vitest";
import { createSystemError } from "../testing/system-error.ts";
import {
  asLazarusError,
  ERROR_CODES,
  ERROR_KINDS,
  type ErrorCode,
  LazarusError,
  refuseExhaustion,
  systemErrorCode,
} from "./errors.ts";

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe("the table of errors", () => {
  it("is complete: every code has a kind, every kind an exit code and an HTTP status", () => {
    for (const code of codes) {
      const error = new LazarusError(code, "what happened");
      const traits = ERROR_KINDS[error.kind];
      expect(traits, code).toBeDefined();
      expect(error.exitCode).toBe(traits.exit);
      expect(traits.http).toBeGreaterThanOrEqual(200);
      expect(traits.meaning).not.toBe("");
    }
  });

  it("gives every kind a distinct exit code from 1 to 255", () => {
    const exits = Object.values(ERROR_KINDS).map(({ exit }) => exit);
    expect(new Set(exits).size).toBe(exits.length);
    for (const exit of exits) expect(exit > 0 && exit < 256).toBe(true);
  });

  it("writes codes in capitals, so that they are never mistaken for kinds", () => {
    for (const code of codes) expect(code).toMatch(/^[A-Z][A-Z_]*$/);
  });
});

describe("LazarusError", () => {
  it("always has the same JSON fields, null if unknown", () => {
    const full = new LazarusError("LOCK_HELD", "held", {
      hint: "wait",
      details: { pid: 7 },
      cause: new Error("x"),
    });
    expect(JSON.parse(JSON.stringify(full))).toEqual({
      code: "LOCK_HELD",
      message: "held",
      hint: "wait",
      details: { pid: 7 },
    });
    expect(JSON.parse(JSON.stringify(new LazarusError("USAGE", "bad")))).toEqual({
      code: "USAGE",
      message: "bad",
      hint: null,
      details: {},
    });
  });

  it("is an Error that keeps its cause", () => {
    const cause = new Error("below");
    expect(new LazarusError("INTERNAL", "above", { cause }).cause).toBe(cause);
    expect("cause" in new LazarusError("INTERNAL", "above")).toBe(false);
  });
});

describe("asLazarusError", () => {
  const mapped: Record<string, ErrorCode> = {
    ENOSPC: "DISK_FULL",
    EDQUOT: "DISK_FULL",
    EROFS: "DISK_READ_ONLY",
    EIO: "DISK_IO",
    EACCES: "PERMISSION",
    EPERM: "PERMISSION",
    EMFILE: "TOO_MANY_FILES",
    ENFILE: "TOO_MANY_FILES",
    ENOENT: "NOT_FOUND",
  };
  for (const [systemCode, code] of Object.entries(mapped)) {
    it(`turns ${systemCode} into ${code}, with the object, a hint and the cause`, () => {
      const cause = createSystemError(systemCode, { syscall: "open", path: "/x/y" });
      const error = asLazarusError(cause, "writing /x/y", "/x");
      expect(error.code).toBe(code);
      expect(error.message).toMatch(/^writing \/x\/y: /);
      expect(error.hint).not.toContain("DIR");
      expect(error.cause).toBe(cause);
    });
  }

  it("inserts the directory into the hint literally", () => {
    const cause = createSystemError("EACCES", { syscall: "open" });
    expect(asLazarusError(cause, "reading", "/a/$&/$1").hint).toContain("/a/$&/$1");
  });

  it("returns a LazarusError unchanged and converts everything else to INTERNAL", () => {
    const known = new LazarusError("USAGE", "bad");
    expect(asLazarusError(known, "doing")).toBe(known);
    expect(asLazarusError(new TypeError("oops"), "doing")).toMatchObject({
      code: "INTERNAL",
      message: "doing: oops",
    });
    expect(asLazarusError("text", "doing")).toMatchObject({ code: "INTERNAL", message: "doing: text" });
    expect(asLazarusError(undefined, "doing").code).toBe("INTERNAL");
  });
});

describe("systemErrorCode", () => {
  it("reads the code of errors only", () => {
    expect(systemErrorCode(createSystemError("EIO", { syscall: "read" }))).toBe("EIO");
    for (const other of [
      undefined,
      null,
      "EIO",
      { code: "EIO" },
      new Error("EIO"),
      Object.assign(new Error(), { code: 5 }),
    ]) {
      expect(systemErrorCode(other)).toBeUndefined();
    }
  });
});

it("refuseExhaustion throws when descriptors or memory run out, and not on other errors", () => {
  for (const code of ["EMFILE", "ENFILE", "ENOMEM"])
    expect(() => refuseExhaustion(createSystemError(code, { syscall: "open" }), "reading x", "/x")).toThrow(
      LazarusError,
    );
  for (const code of ["EIO", "EACCES", "ENOENT"])
    expect(() =>
      refuseExhaustion(createSystemError(code, { syscall: "open" }), "reading x", "/x"),
    ).not.toThrow();
});
