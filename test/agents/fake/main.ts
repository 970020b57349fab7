// A fake agent: `node main.ts <profile> <arguments of the CLI>`. It writes a book of six chapters, one per turn, and reads
// from its conversation which chapter is next, as a model does: an agent that lost its conversation starts over. Each step
// first has an effect (its number is appended to outbox.log), then writes chapter-N.md. Told by its conversation that a call
// was cut off, it checks the outbox before it repeats the effect. Controlled by the environment:
//   FAKE_DIRECTORY   where it leaves its traces: requests.jsonl (one line per model request), paused (see below)
//   FAKE_STEPS       chapters (6)
//   FAKE_PAUSE       STEP:STAGE, e.g. 3:effect: waits there, once, until `go` appears in FAKE_DIRECTORY. Stages:
//                    response (before the call is recorded), call, effect, file, result
//   FAKE_OUTBOX      the file of the effects (outbox.log in the working directory)
//   FAKE_NESTED      a command line that the call of step 2 also runs: another agent, with its own traces
//   FAKE_FAIL        STATUS*LIVES@STEP, e.g. 529*2@3: that many lives end with this API error at that step
// Nothing depends on time: what a test waits for is a file.
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  watch,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../../src/platform/json-file.ts";
import { LINES } from "./lines.ts";
import type { Call, Hooks, Message, Moment, Place, Refusal } from "./profile.ts";
import { PROFILES } from "./profiles.ts";

const [name = "", ...args] = process.argv.slice(2);
const profile = PROFILES[name]!;
const { env } = process;
// Like the real ones, it is found in the process table by the name of its program.
process.title = name;
const place: Place = { cwd: realpathSync(process.cwd()), home: env.HOME ?? "/", env };
const store = profile.store ?? LINES;
const control = env.FAKE_DIRECTORY ?? join(place.home, ".fake");
const steps = Number(env.FAKE_STEPS ?? "6");

/** The wrapper: its exit code is that of the real process. */
function startInner(): void {
  const child = spawn(process.execPath, process.argv.slice(1), {
    stdio: "inherit",
    env: { ...env, FAKE_INNER: "1" },
  });
  process.on("SIGTERM", () => profile.wrapper === "forwards" && child.kill("SIGTERM"));
  child.on("exit", (code, signal) => process.exit(signal === null ? code! : 137));
}

async function live(): Promise<void> {
  mkdirSync(control, { recursive: true });
  const request = profile.parse(args);
  if (!env[profile.noKey.variable]) refuse(profile.noKey);
  const wanted = request.resume ?? (request.continues ? request.id : undefined);
  const found = wanted === undefined ? undefined : profile.findFile(place, wanted);
  if (request.resume !== undefined && request.resume !== "newest" && found === undefined)
    refuse(profile.unknownSession!(request.resume));
  const id = found?.id ?? request.id ?? profile.newId?.() ?? randomUUID();
  const path = found?.path ?? profile.newFile(place, id, Date.now());
  mkdirSync(dirname(path), { recursive: true });
  const session = new Session(id, path, await profile.hooks(args, place));
  if (profile.announce !== undefined) process.stderr.write(`${profile.announce(id)}\n`);
  process.on("SIGTERM", () => {
    session.emit({ kind: "session-end", reason: "other" });
    process.exit(profile.codeOnSigterm);
  });
  session.open(found !== undefined);
  const text = await request.prompt;
  session.say({ role: "user", text });
  session.emit({ kind: "prompt", text });
  await session.work();
}

class Session {
  readonly id: string;
  readonly path: string;
  readonly hooks: Hooks;
  messages: Message[] = [];

  constructor(id: string, path: string, hooks: Hooks) {
    this.id = id;
    this.path = path;
    this.hooks = hooks;
  }

  /** Reads what is there, and closes calls that were cut off. */
  open(resumed: boolean): void {
    if (resumed) this.messages = [...profile.read(store.read(this.path, this.id))];
    this.append(profile.header(place, this.id, resumed));
    const answered = new Set(this.messages.map((each) => (each.role === "tool" ? each.id : "")));
    for (const message of [...this.messages]) {
      if (message.role !== "assistant" || message.call === undefined || answered.has(message.call.id))
        continue;
      if (profile.placeholder === null) this.messages = this.messages.filter((each) => each !== message);
      else this.close(message.call.id, profile.placeholder);
    }
    this.emit({ kind: "session", resumed });
  }

  close(id: string, text: string): void {
    const message: Message = { role: "tool", id, text, isError: true };
    if (profile.inventsPlaceholder) this.messages.push(message);
    else this.say(message);
  }

  say(message: Message): void {
    this.messages.push(message);
    this.append(profile.lines(message, place, this.id));
  }

  append(lines: readonly JsonObject[]): void {
    store.append(this.path, this.id, lines);
  }

  /** Context that a hook of SessionStart prints reaches the model. */
  emit(moment: Moment): void {
    const session = { id: this.id, path: this.path, cwd: place.cwd };
    for (const { event, tool, input } of profile.events(moment, session))
      for (const hook of this.hooks[event] ?? []) {
        if ("run" in hook) {
          hook.run(input, session);
          continue;
        }
        const { matcher, command } = hook;
        if (tool !== undefined && matcher !== undefined && matcher !== "*" && !new RegExp(matcher).test(tool))
          continue;
        const { stdout } = spawnSync("/bin/sh", ["-c", command], {
          input: JSON.stringify(input),
          encoding: "utf8",
        });
        const reply = stdout.trim().startsWith("{") ? (JSON.parse(stdout) as JsonObject) : {};
        const context = (reply.hookSpecificOutput as JsonObject | undefined)?.additionalContext;
        if (typeof context === "string") this.messages.push({ role: "user", text: context });
      }
  }

  async work(): Promise<void> {
    for (let step = this.next(); step <= steps; step = this.next()) await this.write(step);
    this.note("done");
    const text = "The book is done.";
    this.say({ role: "assistant", text });
    process.stdout.write(`${text}\n`);
    this.emit({ kind: "done", text });
    this.emit({ kind: "session-end", reason: "other" });
  }

  async write(step: number): Promise<void> {
    this.note(String(step));
    this.failIfAsked(step);
    const outbox = env.FAKE_OUTBOX ?? "outbox.log";
    const look = this.isTold(step) ? `grep -qx ${step} ${outbox} || ` : "";
    const call: Call = {
      id: `call_${randomUUID()}`,
      command: `${look}echo ${step} >> ${outbox}; write chapter-${step}.md`,
    };
    const text = `Now chapter ${step}.`;
    await pause(step, "response");
    const spoken: Message = { role: "assistant", text, call };
    if (profile.writesCallFirst) this.say(spoken);
    else this.append(profile.before?.(spoken) ?? []);
    this.emit({ kind: "before-tool", call });
    await pause(step, "call");
    spawnSync("/bin/sh", ["-c", call.command.replace(/; write .*/, "")]);
    if (step === 2 && env.FAKE_NESTED) runNested(env.FAKE_NESTED);
    await pause(step, "effect");
    writeFileSync(`chapter-${step}.md`, `chapter ${step}, by life ${env.LAZARUS_EPOCH ?? "0"}\n`);
    await pause(step, "file");
    if (!profile.writesCallFirst) this.say(spoken);
    this.say({ role: "tool", id: call.id, text: `wrote chapter-${step}.md` });
    this.emit({ kind: "after-tool", call, text: `wrote chapter-${step}.md` });
    await pause(step, "result");
  }

  /** One past the highest chapter whose call has a good result. */
  next(): number {
    const good = new Set(this.messages.map((each) => (each.role === "tool" && !each.isError ? each.id : "")));
    const chapters = this.messages.map((each) =>
      each.role === "assistant" && each.call !== undefined && good.has(each.call.id)
        ? chapterOf(each.call)
        : 0,
    );
    return Math.max(0, ...chapters) + 1;
  }

  /** Does the conversation say that the call for this chapter was cut off? */
  isTold(step: number): boolean {
    const bad = new Set(this.messages.map((each) => (each.role === "tool" && each.isError ? each.id : "")));
    return this.messages.some((each, index) => {
      if (each.role === "assistant")
        return each.call !== undefined && bad.has(each.call.id) && chapterOf(each.call) === step;
      if (each.role !== "user") return false;
      // It follows the note for every chapter.
      if (index === 0) return each.text.includes("look at the files before you do anything again");
      return (
        new RegExp(`chapter-${step}\\b`).test(each.text) &&
        /unknown|interrupted|cut off|killed|under way/i.test(each.text)
      );
    });
  }

  note(next: string): void {
    const prompts = this.messages.flatMap((each) => (each.role === "user" ? [each.text] : []));
    const line = {
      epoch: env.LAZARUS_EPOCH ?? null,
      session: this.id,
      messages: this.messages.length,
      next,
      prompt: prompts.at(-1),
    };
    appendFileSync(join(control, "requests.jsonl"), `${JSON.stringify(line)}\n`);
  }

  failIfAsked(step: number): void {
    const asked = /^(\d+)\*(\d+)@(\d+)$/.exec(env.FAKE_FAIL ?? "");
    if (asked === null || Number(asked[3]) !== step) return;
    const counter = join(control, "failures");
    const failed = existsSync(counter) ? Number(readFileSync(counter, "utf8")) : 0;
    if (failed >= Number(asked[2])) return;
    writeFileSync(counter, String(failed + 1));
    const status = Number(asked[1]);
    const refusal = profile.errors[status];
    if (refusal === undefined) throw new Error(`${profile.name} has no error ${status}`);
    this.append(profile.errorLines?.(refusal, place, this.id) ?? []);
    this.emit({ kind: "failure", status, text: refusal.text });
    refuse(refusal);
  }
}

function runNested(line: string): void {
  const own = { FAKE_DIRECTORY: join(control, "nested"), FAKE_OUTBOX: join(control, "nested.log") };
  const { status } = spawnSync("/bin/sh", ["-c", `${line}; exit $?`], {
    env: { ...env, ...own, FAKE_STEPS: "1", FAKE_PAUSE: "", FAKE_NESTED: "", FAKE_INNER: undefined },
  });
  if (status !== 0) throw new Error(`the nested agent exited with ${status}`);
}

function chapterOf({ command }: Call): number {
  return Number(/chapter-(\d+)/.exec(command)?.[1] ?? 0);
}

function refuse({ text, stream, code }: Refusal): never {
  process[stream].write(`${text}\n`);
  process.exit(code);
}

/** Pauses once per test, in the first life that gets here; the file `paused` contains its pid. */
async function pause(step: number, stage: string): Promise<void> {
  if (env.FAKE_PAUSE !== `${step}:${stage}`) return;
  const paused = join(control, "paused");
  if (existsSync(paused)) return;
  const go = join(control, "go");
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = () => existsSync(go) && resolve();
  const watcher = watch(control, check);
  writeFileSync(paused, String(process.pid));
  check();
  await promise;
  watcher.close();
}

const isWrapped = profile.wrapper !== "none" && env[profile.noWrapper ?? ""] === undefined;
if (isWrapped && env.FAKE_INNER === undefined) startInner();
else await live();
