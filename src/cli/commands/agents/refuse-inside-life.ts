// Commands that grant something are refused inside an agent (INV-11). Not a sandbox: an agent can do whatever its user can.
// It prevents an agent from widening its own permissions by accident or because a prompt told it to.
import { LazarusError } from "../../../platform/errors.ts";
import type { CliContext } from "../../context.ts";

/** `mission`: only if the caller is an agent of this mission. */
export function refuseInsideLife(
  { surroundings: { env } }: CliContext,
  command: string,
  mission?: string,
): void {
  const { LAZARUS_MISSION: own, LAZARUS_EPOCH: epoch } = env;
  if (!own || !epoch || (mission !== undefined && mission !== own)) return;
  throw new LazarusError(
    "CONSENT_REFUSED",
    `lazarus ${command} is refused here: this process belongs to life ${epoch} of ${own}, and an agent cannot grant itself anything`,
    { hint: `lazarus ${command} in your own terminal`, details: { mission: own, epoch } },
  );
}
