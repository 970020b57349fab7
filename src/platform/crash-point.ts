// Named points at which a test can kill the process, so that a crash is tested between any two writes. In production no hook
// is set, and a crash point costs one comparison. The kill loop finds the names in the sources, so new crash points are
// tested automatically.

type Hook = (name: string) => void;

const KEY = Symbol.for("lazarus.crash-point");
const holder = globalThis as { [KEY]?: Hook };
const hook = holder[KEY];

/** Marks a point where a crash must be survivable. `name` is a literal: `module.operation.point`. */
export function crashPoint(name: string): void {
  if (hook !== undefined) hook(name);
}
