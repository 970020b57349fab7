// The worker thread of a restore: makes batches of files. The layers are passed in when it starts.
import { workerData } from "node:worker_threads";
import { serveTasks } from "../../platform/worker/worker-pool.ts";
import { createLayerReader, type LayerMembers } from "../vault/layer-reader.ts";
import type { FileToMake } from "./batches.ts";
import { detectCapabilities } from "./make-path.ts";
import { type FilesTask, makeFiles } from "./pool.ts";

const { layers, root, replace } = workerData as FilesTask & { layers: readonly LayerMembers[] };
const reader = createLayerReader(layers);
const capabilities = detectCapabilities();

serveTasks("restoring files", (files: readonly FileToMake[]) => ({
  result: makeFiles({ root, replace }, files, reader, capabilities),
}));
