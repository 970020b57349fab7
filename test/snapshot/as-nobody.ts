// Takes a checkpoint in a process of its own, for tests that need another user: root reads everything.
import { createLab } from "./lab.ts";

const lab = createLab({ home: process.argv[2]! });
const { flaws, outcome, checkpoint } = await lab.checkpoint();
process.stdout.write(JSON.stringify({ flaws, outcome, files: checkpoint.metadata.counts.files }));
