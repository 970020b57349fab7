// All built-in adapters. A user declares more in the config.
import type { Adapter } from "../adapter.ts";

export const ADAPTERS: readonly Adapter[] = [];

export function findAdapter(name: string): Adapter | undefined {
  return ADAPTERS.find((each) => each.name === name);
}
