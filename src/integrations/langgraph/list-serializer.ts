// Serializes long lists without saying again what was said a step ago. LangGraph hands over the whole list of messages
// at every step; its serializer needs 6 ms for 400 KB of them, looking at them to see that nothing changed needs 0.1.
// An element's text is reused only when every value it can be seen to hold is the very same; anything that is not
// plain data or a message is serialized anew each time, so a change in place is never missed.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

/** All that serialization could see of an element, side by side: compared in one loop, without making anything. */
interface Remembered {
  readonly holders: object[];
  readonly keys: (string | number)[];
  readonly values: unknown[];
  /** Objects and lists in it, and how many entries they had: an added one has no line above. */
  readonly containers: object[];
  readonly sizes: number[];
  bytes: Uint8Array;
}

/** A value's text in pieces that stay the same objects while what they say stays the same. */
export interface SerializedPieces {
  readonly type: string;
  readonly pieces: readonly Uint8Array[];
}

/** The part of a serializer that long lists pass. */
export interface ListSerializer {
  /** The pieces together are what `serde.dumpsTyped` says, but for the order of keys in an object that got them anew. */
  dumpPieces(value: unknown): Promise<SerializedPieces>;
}

const DEEPEST = 16;
const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Serializes everything anew: of a serializer that is not LangGraph's own nothing is known. */
export function createPlainSerializer(serde: SerializerProtocol): ListSerializer {
  return {
    async dumpPieces(value) {
      const [type, bytes] = await serde.dumpsTyped(value);
      return { type, pieces: [bytes] };
    },
  };
}

/** Only for LangGraph's own JSON serializer. */
export function createListSerializer(serde: SerializerProtocol): ListSerializer {
  const remembered = new WeakMap<object, Remembered>();
  const plain = createPlainSerializer(serde);
  const dumpElement = async (element: object): Promise<Uint8Array | undefined> => {
    const seen = createRemembered();
    const walkable = look(element, seen, 0);
    const [type, bytes] = await serde.dumpsTyped(element);
    if (type !== "json") return undefined;
    seen.bytes = bytes;
    if (walkable) remembered.set(element, seen);
    return bytes;
  };
  return {
    async dumpPieces(value) {
      if (!Array.isArray(value) || value.length === 0) return plain.dumpPieces(value);
      const pieces: Uint8Array[] = [OPEN];
      for (const element of value) {
        if (typeof element !== "object" || element === null) return plain.dumpPieces(value);
        const known = remembered.get(element);
        const bytes = known !== undefined && isUnchanged(known) ? known.bytes : await dumpElement(element);
        if (bytes === undefined) return plain.dumpPieces(value);
        if (pieces.length > 1) pieces.push(COMMA);
        pieces.push(bytes);
      }
      pieces.push(CLOSE);
      return { type: "json", pieces };
    },
  };
}

function createRemembered(): Remembered {
  return { holders: [], keys: [], values: [], containers: [], sizes: [], bytes: CLOSE };
}

/** Notes all that serialization can see of an object; false when some of it cannot be seen from outside. */
function look(value: object, into: Remembered, depth: number): boolean {
  if (depth >= DEEPEST || !isOpen(value)) return false;
  into.containers.push(value);
  into.sizes.push(sizeOf(value));
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  for (const key of keys) {
    const each = (value as Record<string | number, unknown>)[key];
    into.holders.push(value);
    into.keys.push(key);
    into.values.push(each);
    if (typeof each === "function" || typeof each === "symbol") return false;
    if (typeof each === "object" && each !== null && !look(each, into, depth + 1)) return false;
  }
  return true;
}

function isUnchanged({ holders, keys, values, containers, sizes }: Remembered): boolean {
  for (let i = 0; i < containers.length; i += 1) {
    if (sizeOf(containers[i]!) !== sizes[i]) return false;
  }
  for (let i = 0; i < holders.length; i += 1) {
    if (!Object.is((holders[i] as Record<string | number, unknown>)[keys[i]!], values[i])) return false;
  }
  return true;
}

/** Counted in a loop, since `Object.keys` makes a list each time: half of the whole look. */
function sizeOf(value: object): number {
  if (Array.isArray(value)) return value.length;
  let size = 0;
  for (const _ in value) size += 1;
  return size;
}

/** Plain data, and LangChain's own serializable objects, whose text is made from their properties. */
function isOpen(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return true;
  return "lc_serializable" in value && value.lc_serializable === true;
}
