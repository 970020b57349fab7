// Commands about the runs of a store.
import { type Command, defineCommand, type PositionalSpec } from "../../command.ts";
import type { STORE_OPTIONS } from "./places.ts";
import { type StoreChoice, withSameStore } from "./same-store.ts";

type Options = Command["options"] & typeof STORE_OPTIONS;

/** Defines a command with the options of a store. The commands that its errors suggest name the same store. */
export function defineRunsCommand<const O extends Options, const P extends readonly PositionalSpec[]>(
  command: Command<O, P>,
): Command<O, P> {
  return defineCommand({
    ...command,
    async run(context, input) {
      try {
        return await command.run(context, input);
      } catch (error) {
        throw withSameStore(error, input.options as StoreChoice);
      }
    },
  });
}
