// Commands that grant something are for humans (INV-11).
import { LazarusError } from "../../../platform/errors.ts";
import type { CliContext } from "../../context.ts";

/** `act` completes "an agent cannot …". */
export function refuseAgent({ surroundings }: CliContext, act: string): void {
  if (surroundings.env.LAZARUS_EPOCH === undefined) return;
  throw new LazarusError("USAGE", `an agent cannot ${act}; only a human can`, {
    hint: "run the command in your own terminal",
  });
}
