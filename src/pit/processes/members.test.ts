import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { homeConfig } from "../../cell/home-config.ts";
import { findMembers, type KernelView, type LifeIdentity } from "./members.ts";
import type { ProcessEntry } from "./process-table.ts";

const at = (pid: number, startTime: string) => ({ pid, startTime, bootId: "boot-1" });
const KEEPER = at(900_001, "100");
const AGENT = at(900_002, "101");
const HELPER = at(900_003, "101");
const home = mkdtempSync(join(tmpdir(), "lazarus-members-"));
afterAll(() => rmSync(home, { recursive: true }));
const { config } = homeConfig(home);
const identity: LifeIdentity = {
  config,
  mission: "m1",
  bootId: "boot-1",
  token: "t1",
  cgroup: null,
  keeper: KEEPER,
  life: { epoch: 2, keeper: KEEPER, agent: AGENT, helper: HELPER, token: "t1", detached: true },
};

const entry = (pid: number, startTime: string, session: number, parent = 1, state = "S"): ProcessEntry => ({
  pid,
  startTime,
  session,
  parent,
  state,
});

interface Facts {
  readonly tokens?: Readonly<Record<number, string>>;
  readonly group?: readonly number[];
  readonly locks?: Readonly<Record<number, string>>;
}

function members(table: ProcessEntry[], facts: Facts = {}, of = identity): number[] {
  const kernel: KernelView = {
    table,
    hasToken: (pid, token) => facts.tokens?.[pid] === token,
    groupMembers: () => facts.group ?? [],
    lockedMission: (pid) => facts.locks?.[pid],
  };
  return findMembers(of, kernel)
    .map(({ pid }) => pid)
    .sort();
}

describe("while its keeper lives", () => {
  const table = [
    entry(900_001, "100", 900_001),
    entry(900_002, "101", 900_001, 900_001),
    entry(900_003, "101", 900_001, 900_001),
    entry(900_004, "102", 900_001, 900_003),
    entry(900_005, "102", 900_001, 900_002),
    entry(900_006, "103", 900_006, 900_001),
    entry(900_007, "104", 900_007, 1),
  ];
  test("a life is the agent and what it started, without the keeper, its helper and other processes", () => {
    expect(members(table)).toEqual([900_002, 900_005, 900_006]);
  });
  test("the keeper of another mission is not part of it, nor is anything below", () => {
    const nested = [
      ...table,
      entry(900_010, "105", 900_001, 900_005),
      entry(900_011, "106", 900_001, 900_010),
    ];
    const locks = { 900010: "m2" };
    // A lock alone is not enough: that mission's life.json must name the process.
    expect(members(nested, { locks })).toEqual([900_002, 900_005, 900_006, 900_010, 900_011]);
    const directory = join(config.run_dir, "agents", "m2");
    mkdirSync(directory, { recursive: true });
    const writeLife = (startTime: string) =>
      writeFileSync(
        join(directory, "life.json"),
        JSON.stringify({ epoch: 1, keeper: at(900_010, startTime), agent: at(900_011, "106") }),
      );
    writeLife("99");
    expect(members(nested, { locks })).toContain(900_010);
    writeLife("105");
    expect(members(nested, { locks })).toEqual([900_002, 900_005, 900_006]);
    expect(members(nested)).toContain(900_010);
  });
});

describe("after its keeper was killed", () => {
  test("a life is its agent, its helper, its session, its token and its group, and what is below those", () => {
    const table = [
      entry(900_002, "101", 7),
      entry(900_003, "101", 900_001),
      entry(900_005, "102", 900_001),
      entry(900_006, "103", 900_006),
      entry(900_007, "104", 900_007),
      entry(900_008, "105", 900_008, 900_006),
      entry(900_009, "106", 900_009),
    ];
    const facts = { tokens: { 900006: "t1", 900009: "another" }, group: [900_007] };
    expect(members(table, facts, { ...identity, cgroup: "/group" })).toEqual([
      900_002, 900_003, 900_005, 900_006, 900_007, 900_008,
    ]);
  });
  test("a reused pid counts neither as the agent nor as its session", () => {
    expect(members([entry(900_002, "555", 7)])).toEqual([]);
    expect(members([entry(900_001, "999", 900_001), entry(900_010, "1000", 900_001)])).toEqual([]);
  });
  test("an agent with a terminal has its own session", () => {
    const table = [entry(900_005, "102", 900_002), entry(900_006, "103", 900_006)];
    expect(members(table)).toEqual([900_005]);
    expect(members([...table, entry(900_002, "555", 900_002)])).toEqual([]);
  });
  test("a life does not include the session of a foreground agent's terminal", () => {
    const foreground = { ...identity, life: { ...identity.life!, detached: false } };
    expect(members([entry(900_010, "102", 900_001)], {}, foreground)).toEqual([]);
  });
  test("a life has no processes after a reboot, and zombies do not count", () => {
    expect(members([entry(900_002, "101", 900_001)], {}, { ...identity, bootId: "boot-2" })).toEqual([]);
    expect(members([entry(900_002, "101", 900_001, 1, "Z")])).toEqual([]);
  });
});
