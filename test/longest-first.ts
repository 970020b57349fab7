// The order of test files: the longest first, so that no core idles at the end beside one long file; those that mostly
// wait in turns with those that mostly compute. Everything else follows by size, which is Vitest's own order in a fresh
// clone. Vitest hands files to workers as these become free.
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ROOT = join(import.meta.dirname, "..");

const LONGEST = [
  "test/pit/damaged.test.ts",
  "test/crash/checkpoint.test.ts",
  "test/pit/hostile.test.ts",
  "test/run/langgraph.test.ts",
  "test/pit/pit.test.ts",
  "test/run/examples.test.ts",
  "test/snapshot/property.test.ts",
  "test/pit/agents.test.ts",
  "test/run/faults.test.ts",
  "test/snapshot/concurrent.test.ts",
  "test/cli/kill.test.ts",
  "test/run/crash.test.ts",
  "test/snapshot/git.test.ts",
  "test/cli/bad-input.test.ts",
  "test/crash/pit-points.test.ts",
  "test/crash/restore.test.ts",
  "test/cli/setup.test.ts",
  "test/pit/race.test.ts",
  "test/flow/race.test.ts",
  "test/crash/pit.test.ts",
  "test/flow/crash.test.ts",
  "test/pit/service-points.test.ts",
  "test/snapshot/sqlite.test.ts",
  "test/readme/readme.test.ts",
  "test/snapshot/oci-tools.test.ts",
  "test/cli/pipes.test.ts",
  "test/snapshot/restore-to.test.ts",
  "test/flow/exec-kills.test.ts",
  "test/http/event-stream.test.ts",
  "test/recovery/recovery-point.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = LONGEST.filter((name) => !existsSync(join(ROOT, name)));
    if (gone.length > 0)
      throw new Error(`test/longest-first.ts names files that are gone: ${gone.join(", ")}`);
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.indexOf(relative(ROOT, moduleId));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
