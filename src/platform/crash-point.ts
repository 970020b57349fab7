// Named places at which a test can end the process, so that every order of writes can be cut at every line.
// In production no hook is set and a crash point costs one comparison. The kill loop finds the names by
// reading the sources, so a new crash point joins it by being written.

type Hook = (name: string) => void;

const KEY = Symbol.for("lazarus.crash-point");
const holder = globalThis as { [KEY]?: Hook };
const hook = holder[KEY];

/** Marks a place where a crash must be survivable. `name` is a literal: `room.operation.place`. */
export function crashPoint(name: string): void {
  if (hook !== undefined) hook(name);
}
