// The shell of a restore worker: takes batches of files to make, says which are done. The layers come with its start.
import { parentPort, workerData } from "node:worker_threads";
import { hearTasks } from "../../platform/worker-module.ts";
import { createLayerReader, type LayerMembers } from "../vault/layer-reader.ts";
import { decodeOrders } from "./batches.ts";
import { findMeans } from "./make-path.ts";
import { type FilesTask, makeFiles, toReport } from "./pool.ts";

const { layers, root, replace } = workerData as FilesTask & { layers: readonly LayerMembers[] };
const port = parentPort!;
const reader = createLayerReader(layers);
const means = findMeans();

hearTasks(port, (orders: string) => {
  port.postMessage(toReport(() => makeFiles({ root, replace }, decodeOrders(orders, layers), reader, means)));
});
