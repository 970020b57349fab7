// Decides which layer each change goes to: key files, with all their hard links, go to a local-only layer that is never
// pushed (INV-7), everything else to the ordinary one. Pure.
import type { CaptureItem } from "../model/capture-item.ts";
import type { EntryType } from "../model/entry.ts";
import { whiteoutsFor } from "../model/paths.ts";
import type { Survey } from "../scan/found.ts";

export interface LayerPlan {
  readonly localOnly: boolean;
  readonly items: readonly CaptureItem[];
  readonly whiteouts: readonly string[];
  readonly removed: readonly string[];
}

export interface LayerPlans {
  readonly ordinary: LayerPlan;
  readonly local: LayerPlan;
}

type Changes = Pick<Survey, "changed" | "removed" | "removedDirectories">;

export function planLayers(survey: Changes, isSecret: (path: string) => boolean): LayerPlans {
  const { changed, removed, removedDirectories } = survey;
  const secretGroups = new Set(
    changed.filter(({ group, path }) => group !== undefined && isSecret(path)).map(({ group }) => group),
  );
  const isLocal = ({ type, path, group }: CaptureItem) =>
    type !== "directory" && (isSecret(path) || (group !== undefined && secretGroups.has(group)));
  // A directory is always stored in the ordinary layer, regardless of its name, and so is its removal.
  const isLocalRemoval = (path: string) => isSecret(path) && !removedDirectories.has(path);
  // Only needed where something was removed: a map of 100,000 paths is not free.
  const stored = new Map<string, EntryType>(
    removed.length === 0 ? [] : changed.map(({ path, type }) => [path, type]),
  );
  const whiteouts = whiteoutsFor(removed, stored);
  const local = new Set(changed.filter(isLocal));
  const planFor = (localOnly: boolean): LayerPlan => ({
    localOnly,
    items: localOnly ? [...local] : local.size === 0 ? changed : changed.filter((item) => !local.has(item)),
    whiteouts: whiteouts.filter((path) => isLocalRemoval(path) === localOnly),
    removed: removed.filter((path) => isLocalRemoval(path) === localOnly && !stored.has(path)),
  });
  return { ordinary: planFor(false), local: planFor(true) };
}
