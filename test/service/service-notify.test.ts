// sd_notify: READY, WATCHDOG and STOPPING reach the service manager; agents do not inherit the socket.
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, type PitWorld } from "../pit/pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

/** Prints each datagram as a line; Node has no datagrams over unix sockets. */
const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("listening", flush=True)
while True: print(s.recv(4096).decode(), flush=True)
`;

it("the pit notifies the service manager: ready, alive, stopping", async ({ skip }) => {
  if (spawnSync("python3", ["--version"]).status !== 0) skip("listening on a datagram socket needs python3");
  const path = join(world.directory, "notify");
  const listener = spawn("python3", ["-c", LISTENER, path], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    let received = "";
    listener.stdout.on("data", (chunk) => {
      received += chunk;
    });
    const count = (word: string) => received.split("\n").filter((line) => line === word).length;
    await world.until("the listener", () => count("listening") === 1);
    const pit = spawn(process.execPath, [LAUNCHER, "pit"], {
      cwd: world.cwd,
      env: { ...world.env, NOTIFY_SOCKET: path, WATCHDOG_USEC: "400000" },
      stdio: "ignore",
    });
    await world.until("READY=1", () => count("READY=1") === 1);
    world.run([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      "--",
      "sh",
      "-c",
      "env | grep -c NOTIFY_SOCKET; exec sleep 600",
    ]);
    await world.until("its output", () => world.log("m1") === "0\n");
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("a life that the pit started", () => world.log("m1") === "0\n0\n");
    await world.until("three watchdog signals", () => count("WATCHDOG=1") >= 3);
    pit.kill("SIGTERM");
    await world.until("its exit", () => pit.exitCode === 0 && count("STOPPING=1") === 1);
    expect(received.indexOf("READY=1")).toBeLessThan(received.indexOf("STOPPING=1"));
  } finally {
    listener.kill("SIGKILL");
  }
});
