// An npm registry on this machine that serves the packages in node_modules, so that the README's `npm install` lines
// run without a network.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));

/** Directories of all installed versions of a package. */
function installedVersions(name: string): string[] {
  const { packages } = readJson(join(ROOT, "node_modules", ".package-lock.json"));
  return Object.keys(packages)
    .filter((path) => path.endsWith(`node_modules/${name}`))
    .map((path) => join(ROOT, path));
}

function describePackage(name: string, url: string): object | undefined {
  const manifests = installedVersions(name).map((directory) => ({
    ...readJson(join(directory, "package.json")),
    directory,
  }));
  if (manifests.length === 0) return undefined;
  const versions = Object.fromEntries(
    manifests.map(({ directory, ...manifest }) => [
      manifest.version,
      { ...manifest, dist: { tarball: `${url}/-/${encodeURIComponent(directory)}` } },
    ]),
  );
  return { name, "dist-tags": { latest: manifests[0].version }, versions };
}

export interface Registry extends AsyncDisposable {
  readonly url: string;
}

export async function openRegistry(): Promise<Registry> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1));
    if (path.startsWith("-/")) {
      const directory = decodeURIComponent(request.url!.slice("/-/".length));
      // npm strips the first part of each path, regardless of its name.
      const tar = spawn("tar", [
        "-cz",
        "--exclude=node_modules",
        "-C",
        dirname(directory),
        basename(directory),
      ]);
      tar.stdout.pipe(response);
      return;
    }
    const description = describePackage(path, url);
    response.writeHead(description === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(description ?? { error: `${path} is not installed here` }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
