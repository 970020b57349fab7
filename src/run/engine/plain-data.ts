// What tools receive and return, as plain data: neither the record nor a later attempt may depend on objects that a tool keeps.
import { encodeValue, isStorable, isTooDeep } from "../log/codec.ts";
import { thrownText } from "../model/thrown.ts";

/** A copy of a call's input, because a tool may mutate what it is given. */
export function copyOf(input: unknown): unknown {
  try {
    return structuredClone(input);
  } catch {
    // A schema transform may have produced functions or class instances, which cannot be cloned.
    return input;
  }
}

/** A call's result as JSON data. The effect happened, so a result that cannot be serialized becomes a text that says so. */
export function asJson(output: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(output, (_, v) => (typeof v === "bigint" ? String(v) : v)) ?? "null");
  } catch (error) {
    return `The call succeeded; its result is not JSON: ${thrownText(error)}`;
  }
}

/** What is stored of a result that is too deep. */
export const TOO_DEEP = "The call succeeded; its result is nested too deeply to be stored.";

/** What can be stored of an output. The effect happened, so what cannot be stored becomes a text that says so, with a warning. */
export function storable(
  run: { warn(text: string): void },
  { name }: { readonly name: string | null },
  output: unknown,
): unknown {
  try {
    encodeValue(output, "result");
    return output;
  } catch (error) {
    const json = isTooDeep(error) ? undefined : asJson(output);
    if (json !== undefined && isStorable(json)) {
      run.warn(`the result of ${name} is stored as JSON: ${thrownText(error)}`);
      return json;
    }
    run.warn(`the result of ${name} is nested too deeply to be stored; return flatter data`);
    return TOO_DEEP;
  }
}
