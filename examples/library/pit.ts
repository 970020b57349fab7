// Supervision inside your own program: starts an agent, watches it, and stops it after a checkpoint.
//
//   node examples/library/pit.ts ./home
import { openSupervisor } from "lazarus/pit";

using supervisor = openSupervisor({ home: process.argv[2] ?? "home", environment: process.env });
const stop = new AbortController();
const pit = supervisor.run(stop.signal);
const { epoch } = await supervisor.start("fix-login", { command: ["sleep", "600"], revive: "yes" });
const state = supervisor.view("fix-login")!.state;
const { checkpoint } = await supervisor.stop("fix-login");
stop.abort();
await pit;
console.log(`ok: life ${epoch} was ${state}, checkpoint ${checkpoint}`);
