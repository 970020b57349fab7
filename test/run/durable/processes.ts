// Machines of several processes on one host, each of which treats the others as dead, or as alive.
import { type Machine, systemMachine } from "../../../src/platform/machine.ts";

export function processesOf(pid: number, others: "dead" | "alive" = "dead"): Machine {
  const identity = (of: number) => ({ pid: of, startTime: "1", bootId: "b" });
  return {
    ...systemMachine,
    processes: {
      self: () => identity(pid),
      identify: (other) => (other === pid || others === "alive" ? identity(other) : undefined),
      bootId: () => "b",
      hostName: () => "host",
    },
  };
}
