// What the saver remembers between two puts: the newest value of each channel, and which versions the newest
// checkpoints have, so that a step need not read back what it wrote a moment ago. Bounded; forgetting costs a read.

/** A channel value as it was last put or loaded. */
export interface CachedValue {
  readonly version: string;
  readonly type: string;
  /** Together its bytes. */
  readonly pieces: readonly Uint8Array[];
  readonly length: number;
  readonly depth: number;
}

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_CHECKPOINTS = 1000;

/** What a saver remembers. */
export interface BlobCache {
  get(thread: string, ns: string, channel: string, version: string): CachedValue | undefined;
  put(thread: string, ns: string, channel: string, value: CachedValue): void;
  versionOf(thread: string, ns: string, checkpointId: string, channel: string): string | undefined;
  noteVersions(
    thread: string,
    ns: string,
    checkpointId: string,
    versions: Readonly<Record<string, string | number>>,
  ): void;
  forgetThread(thread: string): void;
}

/** Makes an empty cache. */
export function createBlobCache(): BlobCache {
  // Maps keep the order of insertion: the first entry is the one that was touched longest ago.
  const values = new Map<string, CachedValue>();
  const versions = new Map<string, Readonly<Record<string, string | number>>>();
  let bytes = 0;
  const key = (...parts: string[]) => JSON.stringify(parts);
  const drop = (name: string) => {
    bytes -= values.get(name)?.length ?? 0;
    values.delete(name);
  };
  return {
    get(thread, ns, channel, version) {
      const value = values.get(key(thread, ns, channel));
      return value?.version === version ? value : undefined;
    },
    put(thread, ns, channel, value) {
      const name = key(thread, ns, channel);
      drop(name);
      values.set(name, value);
      bytes += value.length;
      while (bytes > MOST_BYTES && values.size > 1) drop(values.keys().next().value!);
    },
    versionOf(thread, ns, checkpointId, channel) {
      const version = versions.get(key(thread, ns, checkpointId))?.[channel];
      return version === undefined ? undefined : String(version);
    },
    noteVersions(thread, ns, checkpointId, noted) {
      const name = key(thread, ns, checkpointId);
      versions.delete(name);
      versions.set(name, { ...noted });
      if (versions.size > MOST_CHECKPOINTS) versions.delete(versions.keys().next().value!);
    },
    forgetThread(thread) {
      const start = `[${JSON.stringify(thread)},`;
      for (const name of [...values.keys()]) if (name.startsWith(start)) drop(name);
      for (const name of [...versions.keys()]) if (name.startsWith(start)) versions.delete(name);
    },
  };
}
