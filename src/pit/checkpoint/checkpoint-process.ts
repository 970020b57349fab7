// A process that takes checkpoints for a pit, one after another (process-pool.ts says why). It ends with the pit: a checkpoint that is not
// published by then leaves only what the next one removes (INV-2).
import { parseMissionId } from "../../cell/mission-id.ts";
import { systemMachine } from "../../platform/machine.ts";
import { VERSION } from "../../platform/version.ts";
import { toSentError } from "../../platform/worker/sent-error.ts";
import { openMissionContext } from "../../snapshot/mission-context.ts";
import { takeCheckpoint } from "../../snapshot/operations/checkpoint.ts";
import { createRegistryAccess } from "../registry-access.ts";
import type { CheckpointReply, CheckpointRequest } from "./process-pool.ts";

// An error means that the pit has ended, so this process ends too.
const send = (reply: CheckpointReply) => process.send?.(reply, undefined, undefined, () => {});

async function serve({
  effective,
  mission,
  options,
  version,
  environment,
}: CheckpointRequest): Promise<void> {
  const warn = (line: string) => send({ kind: "warning", line });
  using registry = createRegistryAccess(systemMachine, effective.config, warn);
  registry.events.on("event", (event) => send({ kind: "event", event }));
  try {
    const context = openMissionContext(systemMachine, effective, parseMissionId(mission), {
      version,
      environment,
      record: registry.record,
    });
    send({ kind: "taken", result: await takeCheckpoint(context, options) });
  } catch (error) {
    send({ kind: "failed", error: toSentError(error, `the checkpoint of ${mission}`) });
  }
}

// After an upgrade in place, a pit of the old version starts this one.
if (process.argv[2] !== VERSION) process.exit();
process.on("message", (request: CheckpointRequest) => void serve(request));
process.once("disconnect", () => process.exit());
send({ kind: "ready" });
