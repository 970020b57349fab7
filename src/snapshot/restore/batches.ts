// What restore workers are told: files to make, as compact rows that cross threads as one JSON text (a structured
// clone of 100,000 entry objects costs three times as much), cut into batches so that no member is inflated twice. Pure.
import type { Entry } from "../model/entry.ts";
import type { LayerMembers } from "../vault/layer-reader.ts";
import { memberAt } from "../vault/toc.ts";

/** A file to be made at `path` below the root of its batch. */
export interface FileOrder {
  readonly path: string;
  readonly entry: Entry;
}

export interface Batch {
  readonly orders: readonly FileOrder[];
  readonly bytes: number;
}

const BATCH_BYTES = 8 << 20;
const BATCH_FILES = 1024;

/** In the order in which the bytes lie; cut only between members. */
export function cutBatches(orders: readonly FileOrder[], layers: readonly LayerMembers[]): Batch[] {
  const rank = new Map(layers.map(({ digest }, i) => [digest, i]));
  const place = ({ entry: { location } }: FileOrder) => (location ? rank.get(location.layer)! : -1);
  const sorted = [...orders].sort(
    (a, b) => place(a) - place(b) || (a.entry.location?.at ?? 0) - (b.entry.location?.at ?? 0),
  );
  const batches: Batch[] = [];
  let batch: FileOrder[] = [];
  let bytes = 0;
  let last = -1;
  let lastLayer = -2;
  for (const order of sorted) {
    const { location } = order.entry;
    const layer = place(order);
    const full = bytes >= BATCH_BYTES || batch.length >= BATCH_FILES;
    const member = location === undefined ? -1 : memberAt(layers[layer]!.raw, location.at);
    if (full && batch.length > 0 && (layer !== lastLayer || member !== last || location === undefined)) {
      batches.push({ orders: batch, bytes });
      batch = [];
      bytes = 0;
    }
    batch.push(order);
    bytes += location?.length ?? 0;
    lastLayer = layer;
    last =
      location === undefined
        ? -1
        : memberAt(layers[layer]!.raw, location.at + Math.max(0, location.length - 1));
  }
  if (batch.length > 0) batches.push({ orders: batch, bytes });
  return batches;
}

type Extra = Pick<Entry, "xattrs" | "extents">;
type Row = [
  path: string,
  real: string | 0,
  mode: number,
  uid: number,
  gid: number,
  mtimeSec: number,
  mtimeNs: number,
  size: number,
  sha256: string,
  layer: number,
  at: number,
  length: number,
  extra?: Extra,
];

export function encodeOrders(orders: readonly FileOrder[], layers: readonly LayerMembers[]): string {
  const rank = new Map(layers.map(({ digest }, i) => [digest, i]));
  const rows = orders.map(({ path, entry }): Row => {
    const { mode, uid, gid, mtimeSec, mtimeNs, size, sha256, location, xattrs, extents } = entry;
    const real = entry.path === path ? 0 : entry.path;
    const where = location ? [rank.get(location.layer)!, location.at, location.length] : [-1, 0, 0];
    const row = [path, real, mode, uid, gid, mtimeSec, mtimeNs, size, sha256, ...where] as unknown as Row;
    if (xattrs !== undefined || extents !== undefined) {
      row.push({ ...(xattrs && { xattrs }), ...(extents && { extents }) });
    }
    return row;
  });
  return JSON.stringify(rows);
}

export function decodeOrders(text: string, layers: readonly LayerMembers[]): FileOrder[] {
  return (JSON.parse(text) as Row[]).map((row) => {
    const [path, real, mode, uid, gid, mtimeSec, mtimeNs, size, sha256, layer, at, length, extra] = row;
    const entry: Entry = {
      path: real === 0 ? path : real,
      type: "file",
      mode,
      uid,
      gid,
      mtimeSec,
      mtimeNs,
      size,
      sha256,
      ...(layer < 0 ? undefined : { location: { layer: layers[layer]!.digest, at, length } }),
      ...extra,
    };
    return { path, entry };
  });
}
