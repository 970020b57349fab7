// The chain of layers of a new checkpoint: merged where it has become too long, and free of continued files in everything but
// live points, because other tools read it (INV-2: nothing is published here).
import type { MissionContext } from "../mission-context.ts";
import {
  CHAIN_LIMITS,
  compactLayers,
  firstContinued,
  LIVE_CHAIN_LIMITS,
  planCompaction,
} from "../vault/compact.ts";
import type { LayerRef } from "../vault/manifest.ts";
import { passCompaction } from "./gate.ts";

/** Merges layers of a chain that is too long, and, except in live points, those that continue files. */
export function shortenChain(
  context: MissionContext,
  chain: readonly LayerRef[],
  isLive: boolean,
): readonly LayerRef[] {
  const limits = isLive ? LIVE_CHAIN_LIMITS : CHAIN_LIMITS;
  const sizes = chain.map((layer) => layer.size);
  const wanted = [planCompaction(sizes, limits), isLive ? undefined : firstContinued(chain)];
  const from = Math.min(...wanted.filter((each) => each !== undefined));
  if (from === Number.POSITIVE_INFINITY) return chain;
  const layers = compactLayers(context, chain, { from, isWhole: !isLive });
  passCompaction(context, chain.slice(from), layers.slice(from));
  return layers;
}
