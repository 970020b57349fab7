import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../../cell/config.ts";
import { readLife } from "../../../cell/life.ts";
import { parseMissionId } from "../../../cell/mission-id.ts";
import { openPitContext, type PitContext } from "../../../pit/context.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { agentLog } from "../../../pit/paths.ts";
import { sendSignal } from "../../../pit/processes/process-table.ts";
import { readRecord } from "../../../pit/record/store.ts";
import { startMission } from "../../../pit/start-mission.ts";
import { stopMission } from "../../../pit/stop.ts";
import { openPit } from "../../../pit/supervise/daemon.ts";
import { replaceFile } from "../../../platform/durable.ts";
import { asLazarusError, ERROR_KINDS, quietly } from "../../../platform/errors.ts";
import { VERSION } from "../../../platform/version.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { agentScript, countLetters, KILLED_AT, LETTERS, type Mailbox, MISSION } from "./demo-agent.ts";

const POLL_MS = 30;
const LIMIT_MS = 300_000;

export const command = defineCommand({
  about:
    "Starts an agent that sends ten letters, and kills it with SIGKILL halfway through. The pit notices, takes a " +
    "checkpoint and restarts the agent, which continues with the letter it was writing. At the end the demo checks " +
    "that each letter was sent exactly once. It runs in a temporary home, which is deleted unless you pass --keep.",
  positionals: [],
  options: { keep: { type: "flag", summary: "keep the temporary home and print its path" } },
  examples: [["lazarus demo", "about ten seconds"]],
  exits: ["alert", "machine", "interrupted"],
  async run(context, { options }) {
    const home = makeHome();
    let result: Result;
    try {
      result = await runDemo(context, home);
    } finally {
      if (!options.keep) rmSync(home, { recursive: true, force: true });
    }
    const { exit, mailbox, revivedMs } = result;
    const document = { exit, home: options.keep ? home : null, ...mailbox, revived_ms: revivedMs };
    context.emit("demo/1", document, () => summarize(context, result, options.keep ? home : null));
    return exit;
  },
});

interface Result {
  readonly exit: number;
  readonly mailbox: Mailbox;
  /** From SIGKILL to the next life. */
  readonly revivedMs: number | null;
}

function makeHome(): string {
  try {
    return realpathSync(mkdtempSync(join(tmpdir(), "lazarus-demo-")));
  } catch (error) {
    throw asLazarusError(error, `creating a temporary home in ${tmpdir()}`, tmpdir());
  }
}

async function runDemo(context: CliContext, home: string): Promise<Result> {
  const { machine, surroundings } = context;
  const environment = { ...surroundings.env, LAZARUS_HOME: home, LAZARUS_CONFIG: undefined };
  const effective = loadConfig({ ...surroundings, cwd: home, env: environment });
  const mailbox = join(home, "mailbox");
  const script = join(home, "agent.sh");
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
): Promise<Result> {
  const { machine, paint } = context;
  const { clock } = machine;
  const mission = parseMissionId(MISSION);
  const out = (text: string) =>
    context.globals.json ? context.terminal.err(text) : context.terminal.out(text);
  const startMs = clock.monotonicMs();
  const line = (text: string) =>
    out(`${`${((clock.monotonicMs() - startMs) / 1000).toFixed(1)} s`.padStart(7)}  ${text}\n`);
  let killedMs: number | undefined;
  let revivedMs: number | null = null;
  pitContext.events.on("event", ({ kind, data }) => {
    if (kind === "death")
      line(paint.red(`the pit notices that the agent died (${data.signal ?? data.exit_code})`));
    if (kind === "checkpoint") line(`checkpoint ${data.checkpoint} taken (${data.reason})`);
    if (kind === "revival") {
      revivedMs = Math.round(clock.monotonicMs() - killedMs!);
      line(paint.green(`agent restarted (life ${data.epoch}), ${revivedMs} ms after the kill`));
    }
  });
  out(`An agent sends ${LETTERS} letters and is killed while it writes letter ${KILLED_AT}.\n`);
  out("The pit, the daemon of Lazarus, brings it back.\n\n");
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
  line("agent started (life 1)");
  let shown = 0;
  while (clock.monotonicMs() - startMs < LIMIT_MS && !context.signal.aborted) {
    const sent = readFileSync(mailbox, "utf8").split("\n").slice(0, -1);
    for (; shown < sent.length; shown += 1) line(sent[shown]!);
    if (killedMs === undefined && isWriting(pitContext, KILLED_AT)) {
      killedMs = clock.monotonicMs();
      const { pid } = readLife(pitContext.config, mission)!.agent;
      sendSignal(pid, "SIGKILL");
      line(paint.red(`kill -9 ${pid} while it writes letter ${KILLED_AT}`));
    }
    const record = readRecord(pitContext.config, mission);
    if (record?.decision && record.decision.at_ms === null && record.end?.epoch === record.life?.epoch) {
      line(`agent ${describeEnd(record.end!)}`);
      break;
    }
    await clock.sleep(POLL_MS, context.signal);
  }
  const counted = countLetters(readFileSync(mailbox, "utf8"));
  const succeeded = counted.once && counted.lives === 2 && revivedMs !== null;
  return {
    exit: context.signal.aborted ? ERROR_KINDS.interrupted.exit : succeeded ? 0 : ERROR_KINDS.alert.exit,
    mailbox: counted,
    revivedMs,
  };
}

function isWriting(pitContext: PitContext, letter: number): boolean {
  const log = quietly(() => readFileSync(agentLog(join(pitContext.config.missions_root, MISSION)), "utf8"));
  return log?.includes(`writing letter ${letter}\n`) === true;
}

function summarize(
  { paint, surroundings }: CliContext,
  { exit, mailbox, revivedMs }: Result,
  home: string | null,
): string {
  if (exit === ERROR_KINDS.interrupted.exit) return "";
  const verdict = mailbox.once
    ? paint.green(`${mailbox.sent} letters sent, each exactly once, by ${mailbox.lives} lives of the agent`)
    : paint.red(`${mailbox.sent} letters sent; expected ${LETTERS}, each exactly once`);
  const restart = revivedMs === null ? "" : `; restarted ${revivedMs} ms after SIGKILL`;
  const kept =
    home === null
      ? "The demo deleted its files."
      : `The demo kept its files. To look at them: export LAZARUS_HOME=${home}`;
  // After `npm start` in a clone, `lazarus` is not on the PATH yet.
  const link = surroundings.env["npm_lifecycle_event"] === "start" ? "  npm link\n" : "";
  return `
${paint.bold("Result:")} ${verdict}${restart}.

${kept}

To try it with an agent of your own:
${link}  lazarus pit &
  lazarus run my-mission --detach --revive yes -- your-agent --its-options
  lazarus status
  lazarus why my-mission
`;
}
