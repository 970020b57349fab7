// Helper processes of tests: started, awaited until they print "ready", and killed when the test ends.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { bundleProgram } from "../bundle.ts";

export interface Child extends AsyncDisposable {
  readonly pid: number;
}

/** Runs a TypeScript file next to this one. */
export async function startChild(file: string, ...args: readonly string[]): Promise<Child> {
  const program = await bundleProgram(join(import.meta.dirname, file));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => reject(new Error(`${file} ended: ${code ?? signal} ${errors}`)));
    child.stdout.once("data", () =>
      resolve({
        pid: child.pid!,
        async [Symbol.asyncDispose]() {
          child.kill();
          await ended;
        },
      }),
    );
  });
}
