// Caches the newest value of each channel and the channel versions of the newest checkpoints, so that a step does not
// have to read back what the previous one wrote. Bounded; an evicted entry costs a read.

/** A channel value as last written or read. */
export interface CachedValue {
  readonly version: string;
  readonly type: string;
  /** Concatenated, its bytes. */
  readonly pieces: readonly Uint8Array[];
  readonly length: number;
  readonly depth: number;
}

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_CHECKPOINTS = 1000;

/** The cache of a saver. */
export interface BlobCache {
  get(thread: string, ns: string, channel: string, version: string): CachedValue | undefined;
  put(thread: string, ns: string, channel: string, value: CachedValue): void;
  versionOf(thread: string, ns: string, checkpointId: string, channel: string): string | undefined;
  putVersions(
    thread: string,
    ns: string,
    checkpointId: string,
    versions: Readonly<Record<string, string | number>>,
  ): void;
  forgetThread(thread: string): void;
}

/** Creates an empty cache. */
export function createBlobCache(): BlobCache {
  // Maps keep insertion order, so the first entry is the least recently written.
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
      while (bytes > MAX_BYTES && values.size > 1) drop(values.keys().next().value!);
    },
    versionOf(thread, ns, checkpointId, channel) {
      const version = versions.get(key(thread, ns, checkpointId))?.[channel];
      return version === undefined ? undefined : String(version);
    },
    putVersions(thread, ns, checkpointId, entries) {
      const name = key(thread, ns, checkpointId);
      versions.delete(name);
      versions.set(name, { ...entries });
      if (versions.size > MAX_CHECKPOINTS) versions.delete(versions.keys().next().value!);
    },
    forgetThread(thread) {
      const start = `[${JSON.stringify(thread)},`;
      for (const name of [...values.keys()]) if (name.startsWith(start)) drop(name);
      for (const name of [...versions.keys()]) if (name.startsWith(start)) versions.delete(name);
    },
  };
}
