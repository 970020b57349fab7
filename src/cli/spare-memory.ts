// Left alone, V8 lets the heap grow to twice what the listing of a large checkpoint holds. Commands that read a whole
// one ask it to be sparing: 320 MB instead of 475 at 118,000 files, for a second of processor time.
export function spareMemory(): void {
  process.getBuiltinModule("node:v8").setFlagsFromString("--optimize-for-size");
}
