// Changes files all the time: rewrites one in place, replaces it, appends to it, or creates and removes directories, until
// its parent kills it.
import fs from "node:fs";

const [what = "", path = "", size = "0"] = process.argv.slice(2);
const length = Number(size);
const letters = Array.from({ length: 26 }, (_, i) => Buffer.alloc(length, 97 + i));

const WORK: Record<string, (round: number) => void> = {
  rewrite: (round) => fs.writeSync(fd, letters[round % 26]!, 0, length, 0),
  append() {
    fs.writeSync(fd, letters[0]!);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  },
  replace(round) {
    fs.writeFileSync(`${path}.tmp`, letters[round % 26]!);
    fs.renameSync(`${path}.tmp`, path);
  },
  vanish(round) {
    fs.writeFileSync(path, letters[round % 26]!);
    fs.rmSync(path);
  },
  rebuild(round) {
    fs.rmSync(path, { recursive: true, force: true });
    fs.mkdirSync(`${path}/deep/er`, { recursive: true });
    for (let i = 0; i < 20; i += 1) fs.writeFileSync(`${path}/deep/er/file${i}`, `round ${round} file ${i}`);
    fs.symlinkSync("deep", `${path}/link`);
  },
};

const work = WORK[what]!;
const fd = what === "rewrite" || what === "append" ? fs.openSync(path, what === "append" ? "a" : "w") : -1;
work(0);
fs.writeSync(1, "ready\n");
for (let round = 1; ; round += 1) work(round);
