// Simulated time and a disk that loses power: what was synced survives, what was not may be gone.
//
//   node examples/library/testing.ts
import { createRandom, createSimulatedClock, createSimulatedDisk } from "lazarus/testing";

const clock = createSimulatedClock();
const alarm = clock.sleep(3_600_000).then(() => "an hour later");
await clock.advance(3_600_000);

const disk = createSimulatedDisk();
const fd = disk.create("/synced", 0o600);
disk.write(fd, Buffer.from("kept"));
disk.fsync(fd);
disk.close(fd);
disk.fsyncDirectory("/");
const after = disk.crash(createRandom(1));
console.log(`ok: ${await alarm}, ${after.readFile("/synced")}`);
