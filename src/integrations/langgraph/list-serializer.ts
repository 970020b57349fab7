// Serializes long lists without saying again what was said a step ago. LangGraph hands over the whole list of messages
// at every step; its serializer needs 6 ms for 400 KB of them, walking them to see that nothing changed needs 0.2.
// An element's text is reused only when every value it can be seen to hold is the very same; anything that is not
// plain data or a message is serialized anew each time, so a change in place is never missed.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

interface Remembered {
  /** Keys, lengths and primitive values in the order of the walk. */
  readonly leaves: readonly unknown[];
  readonly bytes: Uint8Array;
}

/** The part of a serializer that long lists pass. */
export interface ListSerializer {
  /** As `serde.dumpsTyped`, byte for byte. */
  dumpsTyped(value: unknown): Promise<[string, Uint8Array]>;
}

const DEEPEST = 16;
const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Only for LangGraph's own JSON serializer: of another one nothing is known. */
export function createListSerializer(serde: SerializerProtocol): ListSerializer {
  const remembered = new WeakMap<object, Remembered>();
  const dumpElement = async (element: object): Promise<Uint8Array | undefined> => {
    const known = remembered.get(element);
    if (known !== undefined && sameLeaves(element, known.leaves)) return known.bytes;
    const leaves: unknown[] = [];
    const walkable = collectLeaves(element, leaves, 0);
    const [type, bytes] = await serde.dumpsTyped(element);
    if (type !== "json") return undefined;
    if (walkable) remembered.set(element, { leaves, bytes });
    return bytes;
  };
  return {
    async dumpsTyped(value) {
      if (!Array.isArray(value) || value.length === 0) return serde.dumpsTyped(value);
      const parts: Uint8Array[] = [OPEN];
      for (const element of value) {
        const bytes =
          typeof element === "object" && element !== null ? await dumpElement(element) : undefined;
        if (bytes === undefined) return serde.dumpsTyped(value);
        if (parts.length > 1) parts.push(COMMA);
        parts.push(bytes);
      }
      parts.push(CLOSE);
      return ["json", Buffer.concat(parts)];
    },
  };
}

/** Notes all that serialization can see of a value; false when some of it cannot be seen from outside. */
function collectLeaves(value: unknown, into: unknown[], depth: number): boolean {
  if (typeof value !== "object" || value === null) {
    into.push(value);
    return typeof value !== "function" && typeof value !== "symbol";
  }
  if (depth >= DEEPEST || !isOpen(value)) return false;
  const keys = Object.keys(value);
  into.push(keys.length);
  return keys.every((key) => {
    into.push(key);
    return collectLeaves((value as Record<string, unknown>)[key], into, depth + 1);
  });
}

function sameLeaves(value: object, leaves: readonly unknown[]): boolean {
  let at = 0;
  const same = (each: unknown): boolean => {
    if (typeof each !== "object" || each === null) return Object.is(leaves[at++], each);
    const keys = Object.keys(each);
    if (leaves[at++] !== keys.length) return false;
    return keys.every((key) => leaves[at++] === key && same((each as Record<string, unknown>)[key]));
  };
  return same(value) && at === leaves.length;
}

/** Plain data, and LangChain's own serializable objects, whose text is made from their properties. */
function isOpen(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return true;
  return "lc_serializable" in value && value.lc_serializable === true;
}
