import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CheckpointMetadata } from "../model/entry.ts";
import { decodeRecord, encodeRecord, isRecordDocument, type LayerRef, planRecord } from "./live-record.ts";

const layer = fc.integer({ min: 0, max: 5 }).map(
  (n): LayerRef => ({
    digest: `sha256:${n}`,
    size: n,
    mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
    diffId: `sha256:diff-${n}`,
    tocSha256: `toc-${n}`,
    tocBytes: n,
  }),
);
const layers = fc.array(layer, { maxLength: 6 });
const metadata = fc
  .dictionary(fc.constantFrom("message", "agent", "git", "flaws", "conversation"), fc.jsonValue())
  .map((fields) => JSON.parse(JSON.stringify(fields)) as CheckpointMetadata);

describe("a record", () => {
  it("applied to its base gives the point again", () => {
    const base = fc.option(fc.record({ digest: fc.constant("sha256:base"), metadata, layers }), {
      nil: undefined,
    });
    fc.assert(
      fc.property(metadata, layers, base, (wanted, wantedLayers, below) => {
        const document = JSON.parse(encodeRecord(planRecord(wanted, wantedLayers, below)).toString("utf8"));
        expect(isRecordDocument(document)).toBe(true);
        const decoded = decodeRecord(document);
        if ("problem" in decoded) throw new Error(decoded.problem);
        const { record } = decoded;
        const kept = record.base === undefined ? undefined : below!;
        expect({ ...kept?.metadata, ...record.metadata }).toEqual(wanted);
        expect([...(kept?.layers.slice(0, record.base!.keptLayers) ?? []), ...record.layers]).toEqual(
          wantedLayers,
        );
      }),
    );
  });

  it("of another version or shape is refused", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom("layers", "base", "kept_layers", "lazarus"),
        (value, key) => {
          const document = { "lazarus-live-point": 1, layers: [], lazarus: {}, [key]: value };
          const decoded = decodeRecord(JSON.parse(JSON.stringify(document)));
          if ("record" in decoded) expect(Array.isArray(decoded.record.layers)).toBe(true);
          else expect(decoded.problem).toMatch(/its record/);
        },
      ),
    );
    expect(decodeRecord({ "lazarus-live-point": 2 })).toMatchObject({ isNewer: true });
  });
});
