// Messages that reach a run between two steps: from the caller's own steering object, from `send()`, or from a watchdog. The
// SDK's steering delivers them; they are recorded with the step that saw them, so that a replay delivers them there again.
import type { Experimental_Steering as Steering, UserModelMessage } from "ai";
import { entryOf } from "../log/entry.ts";
import type { LiveRun } from "./live-run.ts";

/** The side of a steering object that the SDK's loop uses. */
interface SteeringRun {
  hasPendingMessages(): boolean;
  promoteQueuedMessage(): boolean;
  takeMessages(): UserModelMessage[];
  resolveTakenMessages(options: { stepNumber: number; sentMessages: readonly unknown[] }): Delivered[];
  end(reason: string): void;
}

interface Delivered {
  readonly id: string;
  readonly message: UserModelMessage;
}

const START = Symbol.for("vercel.ai.steering.start");

/** Messages for a run in this process. */
export interface Mailbox {
  /** Delivered before the next step. `inboxId` is taken from the inbox by the write that records it. */
  readonly messages: (Delivered & { readonly inboxId?: string })[];
  /** Called when a message is delivered. */
  onDelivery?(message: UserModelMessage): void;
}

/** A steering object for one call of the loop. */
export function durableSteering(run: LiveRun, mailbox: Mailbox, own: Steering | undefined): Steering {
  const steer = own?.steer.bind(own) ?? refuseDirectMessage;
  const queue = own?.queue.bind(own) ?? refuseDirectMessage;
  return { steer, queue, [START]: () => startRun(run, mailbox, own) } as Steering;
}

function refuseDirectMessage(): never {
  throw new Error("send messages with agent.send()");
}

function startRun(run: LiveRun, mailbox: Mailbox, own: Steering | undefined): SteeringRun {
  const inner = (own as unknown as Record<symbol, () => SteeringRun> | undefined)?.[START]?.();
  let taken: Delivered[] = [];
  const recorded = () =>
    run
      .entriesOf("message")
      .filter(({ step }) => step === run.step + 1)
      .sort((a, b) => a.call - b.call)
      .map(({ value }) => value as Delivered);
  const isRecorded = () => run.isPast || run.get(run.step + 1, "response") !== undefined;
  return {
    hasPendingMessages: () =>
      isRecorded()
        ? recorded().length > 0
        : mailbox.messages.length > 0 || recorded().length > 0 || inner?.hasPendingMessages() === true,
    promoteQueuedMessage: () => !isRecorded() && inner?.promoteQueuedMessage() === true,
    takeMessages() {
      taken = recorded();
      if (isRecorded() || run.isFollower) return taken.map(({ message }) => message);
      const sent = mailbox.messages.splice(0);
      const step = run.step + 1;
      const fresh = [
        ...sent,
        ...(inner?.takeMessages() ?? []).map((message, i) => ({
          id: `${run.id}.${step}.steer${i}`,
          message,
        })),
      ];
      for (const [i, { id, message }] of fresh.entries()) {
        mailbox.onDelivery?.(message);
        run.messages += 1;
        run.keep(entryOf({ step, kind: "message", call: taken.length + i }, { id, message }));
      }
      run.recorder!.take(sent.flatMap(({ inboxId }) => inboxId ?? []));
      taken = [...taken, ...fresh];
      return taken.map(({ message }) => message);
    },
    resolveTakenMessages(options) {
      const named = inner?.resolveTakenMessages(options) ?? [];
      return taken.splice(0).map(({ id, message }, call) => {
        const known = named.find((each) => each.message === message);
        if (known === undefined) return { id, message };
        // Only now does the SDK report the ids of the caller's own messages.
        run.keep(entryOf({ step: run.step + 1, kind: "message", call }, { id: known.id, message }));
        return { id: known.id, message };
      });
    },
    end: (reason) => inner?.end(reason),
  };
}
