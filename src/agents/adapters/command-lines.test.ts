// Command lines of OpenCode, Pi, Copilot, Cline and OpenClaw, as the real programs take them: start, resume, start over.
import { describe, expect, it } from "vitest";
import type { Adapter } from "../adapter.ts";
import { cline } from "./cline.ts";
import { copilot } from "./copilot.ts";
import { openclaw } from "./openclaw.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";

const UUID = "33333333-1111-4111-8111-111111111111";
const OPENCODE = "ses_e12938b79ffeDOF2Ejt7rRlf14";
const CLINE = "1794984905334_rdo5i";

interface Case {
  readonly adapter: Adapter;
  readonly session: string;
  readonly args: string;
  readonly start?: string;
  readonly resume: string | null;
  readonly restart: string;
}

/** NOTE is the note; words are split at blanks. */
const CASES: readonly Case[] = [
  {
    adapter: opencode,
    session: OPENCODE,
    args: "run --model a/b --file x y -- Write it",
    resume: `run --model a/b --file x y --session ${OPENCODE} -- NOTE`,
    restart: "run --model a/b --file x y -- NOTE\n\nWrite it",
  },
  {
    adapter: opencode,
    session: OPENCODE,
    args: "-c --prompt Go",
    resume: `--session ${OPENCODE} --prompt NOTE`,
    restart: "--prompt NOTE\n\nGo",
  },
  {
    adapter: opencode,
    session: OPENCODE,
    args: "some/project",
    resume: `--session ${OPENCODE} --prompt NOTE some/project`,
    restart: "--prompt NOTE some/project",
  },
  {
    adapter: pi,
    session: UUID,
    args: "--model m -nt -p @plan.md Write",
    resume: `--model m --no-tools -p --session ${UUID} NOTE`,
    restart: "--model m --no-tools -p @plan.md NOTE\n\nWrite",
  },
  {
    adapter: pi,
    session: UUID,
    args: "-c",
    resume: `--session ${UUID} NOTE`,
    restart: "NOTE",
  },
  {
    adapter: copilot,
    session: UUID,
    args: "-p Write --allow-tool shell write",
    start: `--session-id=${UUID} -p Write --allow-tool shell write`,
    resume: `--allow-tool shell write --resume=${UUID} -p NOTE`,
    restart: `--allow-tool shell write --session-id=${UUID} -p NOTE\n\nWrite`,
  },
  {
    adapter: copilot,
    session: UUID,
    args: "--model m",
    start: `--session-id=${UUID} --model m`,
    resume: `--model m --resume=${UUID} -i NOTE`,
    restart: `--model m --session-id=${UUID} -i NOTE`,
  },
  {
    adapter: cline,
    session: CLINE,
    args: "-m m Write",
    resume: null,
    restart: "-m m NOTE\n\nWrite",
  },
  {
    adapter: cline,
    session: CLINE,
    args: "-i -m m",
    resume: `-i -m m --id ${CLINE} NOTE`,
    restart: "-i -m m NOTE",
  },
  {
    adapter: openclaw,
    session: "work-1",
    args: "--profile p agent --local -m Write",
    start: "--profile p agent --local -m Write --session-id work-1",
    resume: "--profile p agent --local --session-id work-1 -m NOTE",
    restart: "--profile p agent --local --session-id work-1 -m NOTE\n\nWrite",
  },
  {
    adapter: openclaw,
    session: "work-1",
    args: "agent --local --session-key agent:ops:a -m Write",
    resume: "agent --local --session-key agent:ops:a -m NOTE",
    restart: "agent --local --session-key agent:ops:a -m NOTE\n\nWrite",
  },
];

const words = (line: string) => line.split(" ");

describe.each(CASES)("$adapter.name $args", ({ adapter, session, args, start = args, resume, restart }) => {
  it("starts as typed, with the chosen id where it takes one", () => {
    const chosen = adapter.sessionIds === "chosen" ? session : null;
    expect(adapter.start(words(args), chosen).join(" ")).toBe(start);
  });

  it("resumes with the note as the prompt", () => {
    expect(adapter.resume(words(args), session, "NOTE")?.join(" ") ?? null).toBe(resume);
  });

  it("starts over with the note before the prompt", () => {
    expect(adapter.restart(words(args), session, "NOTE").join(" ")).toBe(restart);
  });
});

const UTILITIES: readonly (readonly [Adapter, ...string[]])[] = [
  [opencode, "session list", "export ses_1", "run --attach http://x hi", "--version"],
  [pi, "install x", "--list-models", "--no-session -p hi", "--export a.html"],
  [copilot, "mcp list", "--acp", "--help", "login"],
  [cline, "auth", "history", "--version", "-z hi"],
  [openclaw, "gateway run", "agent -m through-the-gateway", "agent exec -m x", "status"],
];

describe.each(UTILITIES.map(([adapter, ...lines]) => ({ name: adapter.name, adapter, lines })))(
  "$name",
  ({ adapter, lines }) => {
    it("adds nothing to a line without a conversation of its own", () => {
      for (const line of lines) {
        expect(adapter.parse(words(line)).isUtility, line).toBe(true);
        expect(adapter.start(words(line), UUID).join(" ")).toBe(line);
        expect(adapter.resume(words(line), UUID, "NOTE")).toBeNull();
        expect(adapter.restart(words(line), UUID, "NOTE").join(" ")).toBe(line);
      }
    });

    it("refuses a session id that could be an option or a path", () => {
      for (const id of ["--help", "../../x", "", "a b"]) {
        expect(adapter.isSessionId(id)).toBe(false);
        expect(adapter.resume(words("-p hi"), id, "NOTE")).toBeNull();
      }
    });
  },
);

describe("the session that the user chose", () => {
  const session = (adapter: Adapter, line: string) => adapter.parse(words(line)).session;

  it("is taken from the command line", () => {
    expect(session(opencode, `run -s ${OPENCODE} hi`)).toEqual({ id: OPENCODE });
    expect(session(opencode, `run -s ${OPENCODE} --fork hi`)).toBeNull();
    expect(session(opencode, "run -c hi")).toBe("newest");
    expect(session(pi, `-p --session ${UUID} hi`)).toEqual({ id: UUID });
    expect(session(pi, `--session /x/2026-11-18T06-53-35-584Z_${UUID}.jsonl`)).toEqual({ id: UUID });
    expect(session(pi, "--session 3333")).toBe("newest");
    expect(session(copilot, `--resume=${UUID} -p hi`)).toEqual({ id: UUID });
    expect(session(copilot, `--session-id ${UUID}`)).toEqual({ id: UUID });
    expect(session(copilot, "--continue")).toBe("newest");
    expect(session(cline, `--id ${CLINE} hi`)).toEqual({ id: CLINE });
    expect(session(openclaw, "agent --local --session-id a -m hi")).toEqual({ id: "a" });
  });
});
