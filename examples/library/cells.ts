// Cells and heartbeats: creates a cell, writes its heartbeat and scans all cells.
//
//   node examples/library/cells.ts ./home
import { beat, beatJob, checkJobs, homeConfig, initCell, openRegistry, scanCells } from "lazarus";

const { config } = homeConfig(process.argv[2] ?? "home");
initCell(config, "fix-login");
beat(config, "fix-login", { status: "running tests" });
beatJob(config, "nightly", { intervalSeconds: 86_400 });

const [cell] = scanCells(config).cells;
const [job] = checkJobs(config);
using registry = openRegistry(config.registry_file);
const events = registry.events({ mission: "fix-login" });
console.log(`ok: ${cell!.mission_id} is ${cell!.status}, job ${job!.job}, ${events.length} events`);
