import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../../cell/config.ts";
import { parseMissionId } from "../../../cell/mission-id.ts";
import { startMission, stopMission } from "../../../pit/actions.ts";
import { openPitContext, type PitContext } from "../../../pit/context.ts";
import { signal } from "../../../pit/death/orphans.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { readRecord } from "../../../pit/record/store.ts";
import { readLife } from "../../../pit/start/life.ts";
import { agentLog } from "../../../pit/start/start-agent.ts";
import { openPit } from "../../../pit/supervise/daemon.ts";
import { replaceFile } from "../../../platform/durable.ts";
import { asLazarusError, ERROR_KINDS } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { VERSION } from "../../version.ts";
import { agentScript, FATAL_LETTER, LETTERS, MISSION, type Proof, prove } from "./demo-stage.ts";

const LOOK_MS = 30;
const LONGEST_MS = 300_000;

export const command = defineCommand({
  about:
    "An agent sends ten letters. In the middle it is killed with SIGKILL. The pit notices, saves the scene and brings it " +
    "back; it goes on with the letter it was at. At the end the mailbox is counted: each letter was sent once. It all " +
    "happens in a temporary home, and nothing is left behind unless you ask for it.",
  positionals: [],
  options: { keep: { type: "flag", summary: "keep the temporary home and say where it is" } },
  examples: [["lazarus demo", "about ten seconds"]],
  exits: ["alert", "machine", "interrupted"],
  async run(context, { options }) {
    const home = makeHome();
    let show: Show;
    try {
      show = await play(context, home);
    } finally {
      if (!options.keep) rmSync(home, { recursive: true, force: true });
    }
    const { exit, proof, revivedMs } = show;
    const document = { exit, home: options.keep ? home : null, ...proof, revived_ms: revivedMs };
    context.emit("demo/1", document, () => farewell(context, show, options.keep ? home : null));
    return exit;
  },
});

interface Show {
  readonly exit: number;
  readonly proof: Proof;
  /** From SIGKILL to running again. */
  readonly revivedMs: number | null;
}

function makeHome(): string {
  try {
    return realpathSync(mkdtempSync(join(tmpdir(), "lazarus-demo-")));
  } catch (error) {
    throw asLazarusError(error, `making a temporary home in ${tmpdir()}`, tmpdir());
  }
}

async function play(context: CliContext, home: string): Promise<Show> {
  const { machine, surroundings } = context;
  const environment = { ...surroundings.env, LAZARUS_HOME: home, LAZARUS_CONFIG: undefined };
  const effective = loadConfig({ ...surroundings, cwd: home, env: environment });
  const mailbox = join(home, "mailbox");
  const script = join(home, "agent.sh");
  // The launcher that this very command came from.
  replaceFile(machine.disk, script, agentScript(process.execPath, process.argv[1] ?? "lazarus"));
  replaceFile(machine.disk, mailbox, "");
  using pitContext = openPitContext({
    machine,
    effective,
    version: VERSION,
    environment,
    cwd: home,
    log: () => {},
    warn: (line) => context.warn(line),
  });
  using pit = await openPit(pitContext);
  const closing = new AbortController();
  const running = pit.run(closing.signal);
  try {
    return await watch(context, pitContext, mailbox, script);
  } finally {
    const mission = parseMissionId(MISSION);
    await stopMission(pitContext, mission, { checkpoint: false, graceSeconds: 0 }).catch(() => {});
    closing.abort();
    await running;
  }
}

async function watch(
  context: CliContext,
  pitContext: PitContext,
  mailbox: string,
  script: string,
): Promise<Show> {
  const { machine, paint } = context;
  const { clock } = machine;
  const mission = parseMissionId(MISSION);
  const out = (text: string) =>
    context.globals.json ? context.terminal.err(text) : context.terminal.out(text);
  const begunMs = clock.monotonicMs();
  const line = (text: string) =>
    out(`${`${((clock.monotonicMs() - begunMs) / 1000).toFixed(1)} s`.padStart(7)}  ${text}\n`);
  let killedMs: number | undefined;
  let revivedMs: number | null = null;
  pitContext.events.on("event", ({ kind, data }) => {
    if (kind === "death") line(paint.red(`the pit sees that it is gone (${data.signal ?? data.exit_code})`));
    if (kind === "checkpoint") line(`checkpoint ${data.checkpoint} keeps the scene (${data.reason})`);
    if (kind === "revival") {
      revivedMs = Math.round(clock.monotonicMs() - killedMs!);
      line(paint.green(`life ${data.epoch} begins, ${revivedMs} ms after the kill`));
    }
  });
  out(
    `An agent sends ${LETTERS} letters. Each one is an effect on the outside world that must happen once.\n\n`,
  );
  await startMission(pitContext, {
    mission: MISSION,
    agent: "letter-writer",
    command: ["/bin/sh", script],
    cwd: null,
    env: { MAILBOX: mailbox },
    revive: "yes",
    substitute: null,
    stall_seconds: null,
  });
  line("life 1 begins");
  let shown = 0;
  while (clock.monotonicMs() - begunMs < LONGEST_MS && !context.signal.aborted) {
    const sent = readFileSync(mailbox, "utf8").split("\n").slice(0, -1);
    for (; shown < sent.length; shown += 1) line(sent[shown]!);
    if (killedMs === undefined && isWriting(pitContext, FATAL_LETTER)) {
      killedMs = clock.monotonicMs();
      const { pid } = readLife(pitContext.config, mission)!.agent;
      signal(pid, "SIGKILL");
      line(paint.red(`kill -9 ${pid}, while it writes letter ${FATAL_LETTER}`));
    }
    const record = readRecord(pitContext.config, mission);
    if (record?.decision && record.decision.at_ms === null && record.end?.epoch === record.life?.epoch) {
      line(`life ${record.life?.epoch} ${describeEnd(record.end!)}`);
      break;
    }
    await clock.sleep(LOOK_MS, context.signal);
  }
  const proof = prove(readFileSync(mailbox, "utf8"));
  const whole = proof.once && proof.lives === 2 && revivedMs !== null;
  return {
    exit: context.signal.aborted ? ERROR_KINDS.interrupted.exit : whole ? 0 : ERROR_KINDS.alert.exit,
    proof,
    revivedMs,
  };
}

function isWriting(pitContext: PitContext, letter: number): boolean {
  try {
    const log = readFileSync(agentLog(join(pitContext.config.missions_root, MISSION)), "utf8");
    return log.includes(`writing letter ${letter}\n`);
  } catch {
    return false;
  }
}

function farewell(
  { paint, surroundings }: CliContext,
  { exit, proof, revivedMs }: Show,
  home: string | null,
): string {
  if (exit === ERROR_KINDS.interrupted.exit) return "";
  const verdict = proof.once
    ? paint.green(`${proof.sent} letters in the mailbox, each once, written by ${proof.lives} lives`)
    : paint.red(`${proof.sent} letters in the mailbox; ${LETTERS} were to be sent, each once`);
  const back = revivedMs === null ? "" : `; back ${revivedMs} ms after SIGKILL`;
  const place =
    home === null
      ? "Nothing is left behind."
      : `The temporary home is ${home}; look around with: export LAZARUS_HOME=${home}`;
  // `npm start` from a clone: nobody has put the command on the PATH yet.
  const link = surroundings.env["npm_lifecycle_event"] === "start" ? "  npm link\n" : "";
  return `
${paint.bold("Proof")}  ${verdict}${back}.

${place} To try with an agent of your own:
${link}  lazarus pit &
  lazarus run my-mission --detach --revive yes -- your-agent --its-options
  lazarus status
  lazarus why my-mission
`;
}
