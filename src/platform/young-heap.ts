// The heap's young generation grows with what survives in it, up to 100 MB, and does not shrink while there is work. A
// job that keeps nearly everything it makes gains nothing from that room: it only looks larger than it is.
import { setFlagsFromString } from "node:v8";

const DEFAULT_GROWTH = 2;

/** Until disposed, the young generation stays as large as it is now. */
export function keepYoungHeap(): Disposable {
  setFlagsFromString("--semi-space-growth-factor=1");
  return {
    [Symbol.dispose]: () => setFlagsFromString(`--semi-space-growth-factor=${DEFAULT_GROWTH}`),
  };
}
