// The ordinary layer of a first checkpoint, begun while the walk still finds more: one thread walks, and the other cores
// would have nothing to do for as long. It takes what a look at one directory decides: small files of one name that are
// no secret and no database in use, directories, links. The rest is stored after it, in the same layer.

import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem, CaptureItem, MissedItem } from "../model/capture-item.ts";
import { codecFor } from "../vault/codec.ts";
import { createLayerWriter, type LayerWriter } from "../vault/layer-writer.ts";
import { bytesOf, createGroups, type PackRequest, packTask, takePacked } from "./pack.ts";
import type { Pool } from "./pool.ts";

export interface BegunLayer extends Disposable {
  readonly writer: LayerWriter;
  readonly captured: Map<string, CapturedItem>;
  /** All that was added, in layer order. */
  readonly items: readonly CaptureItem[];
  /** Of all the files that were added. */
  readonly bytes: number;
  /** A path whose directory was added before it. */
  add(item: CaptureItem): void;
  /** Waits until all is packed, and returns what could not be. `onBytes` hears of what is done and of what comes. */
  settle(onBytes: (count: number) => void): Promise<MissedItem[]>;
}

export function beginLayer(context: MissionContext, pool: Pool): BegunLayer {
  const codec = codecFor(context.settings.compression);
  const writer = createLayerWriter(context.machine.disk, context.vault, {
    codec,
    localOnly: false,
    name: "layer",
  });
  const items: CaptureItem[] = [];
  const missed: MissedItem[] = [];
  let bytes = 0;
  let unheard = 0;
  let onBytes = (count: number) => {
    unheard += count;
  };
  const request: PackRequest = {
    root: context.cellRoot,
    captured: new Map(),
    writer,
    codec: codec.name,
    compress: codec.compress,
    onBytes: (count) => onBytes(count),
  };
  const feed = pool.open((result) => takePacked(request, missed, result));
  const groups = createGroups((group) => feed.add(packTask(request, group)));
  return {
    writer,
    captured: request.captured,
    items,
    get bytes() {
      return bytes;
    },
    add(item) {
      items.push(item);
      bytes += bytesOf(item);
      groups.add([item]);
    },
    async settle(listener) {
      onBytes = listener;
      listener(unheard);
      groups.end();
      await feed.end();
      return missed;
    },
    [Symbol.dispose]() {
      feed.stop();
      writer.abandon();
    },
  };
}
