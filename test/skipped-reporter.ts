// Prints at the end of a run which tests were skipped, and why: Vitest's own reporter only counts them.
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

export class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    const skipped = tests.flatMap((test) => {
      const result = test.result();
      // Without a note it was filtered out, or `reportSkipped` has already printed the reason.
      if (result.state !== "skipped" || result.note === undefined) return [];
      const [reason = ""] = result.note.split("\n");
      return [{ reason, name: `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}` }];
    });
    if (skipped.length === 0) return;
    process.stdout.write("\n Skipped, by reason\n");
    for (const [reason, those] of Map.groupBy(skipped, (each) => each.reason))
      process.stdout.write(`  ${reason}\n${those.map(({ name }) => `    ${name}\n`).join("")}`);
  }
}
