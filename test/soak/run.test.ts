// Long loops: kills at later passes of the crash points, and many runs with random shutdowns.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createExecutor, openSqliteRunStore, recoverInterrupted } from "../../src/run/index.ts";
import { createRandom } from "../../src/testing/seeded-ids.ts";
import { CLASSES, enginePoints, findViolation, killAt } from "../run/kill-loop.ts";
import { createScriptedModel } from "../run/scripted-model.ts";

const PASSES = [2, 3, 4, 5, 6, 7, 8];

describe("runs", () => {
  const repeated = enginePoints().filter((point) => /^engine\.(save|effect|model)\./.test(point));
  const cases = repeated.flatMap((point) =>
    PASSES.flatMap((nth) => CLASSES.map((each) => [`${point}#${nth}`, each] as const)),
  );
  test.concurrent.each(cases)("killed at %s with a %s tool", { timeout: 120_000 }, async (point, each) => {
    const result = await killAt({ point, store: "sqlite", class: each }, undefined);
    expect(findViolation(result)).toBeUndefined();
  });

  test("1,000 concurrent runs, stopped at random and resumed until all are done", {
    timeout: 300_000,
  }, async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-soak-"));
    const random = createRandom(20_261_115);
    try {
      await using store = openSqliteRunStore(join(directory, "runs.db"));
      const script = ["one", "two", "three"].map((n) => ({ calls: [{ tool: "look", input: { n } }] }));
      const { jsonSchema } = await import("ai");
      const looks = new Map<string, number>();
      const look = {
        inputSchema: jsonSchema<object>({ type: "object" }),
        effect: "idempotent" as const,
        execute: (_: object, { effectId }: { effectId: string }) => {
          looks.set(effectId, (looks.get(effectId) ?? 0) + 1);
        },
      };
      const agent = { id: "a", tools: { look } };
      const host = () =>
        createExecutor({
          model: createScriptedModel([...script, "end"]),
          store,
          checkpoint: { required: true },
        });
      let executor = host();
      const first = Array.from({ length: 1000 }, (_, i) => executor.run(agent, "go", { runId: `r${i}` }));
      for (let boots = 0; ; boots += 1) {
        const stop = executor;
        setTimeout(() => void stop.shutdown(), random.int(50, 1500));
        await Promise.all(first);
        const left = await store.listInterrupted();
        if (left.length === 0) break;
        expect(boots).toBeLessThan(200);
        executor = host();
        const recovering = executor;
        setTimeout(() => void recovering.shutdown(), random.int(200, 1500));
        await recoverInterrupted(recovering, { agentFor: () => agent });
      }
      const heads = await store.list();
      expect(heads.length).toBe(1000);
      expect(heads.every(({ status, step }) => status === "completed" && step === 4)).toBe(true);
      expect(looks.size).toBe(3000);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
