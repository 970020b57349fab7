// What tools receive and return, as plain data: neither the record nor a later attempt may depend on objects that a tool keeps.
// Pure.
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
