// Records a human's decision on an effect of the kill loop: its arguments are the store, an outcome and the effect.
import { openStore } from "./victim.ts";

const [, , , , , outcome = "", id = ""] = process.argv;
await using store = await openStore();
await store.resolve(id, { outcome: outcome as "done" | "retry" });
process.stdout.write("{}");
