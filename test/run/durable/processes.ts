// Machines of several processes on one host, each of which believes that the others are dead.
import { type Machine, systemMachine } from "../../../src/platform/machine.ts";

export function processesOf(pid: number): Machine {
  const self = { pid, startTime: "1", bootId: "b" };
  return {
    ...systemMachine,
    processes: {
      self: () => self,
      identify: (other) => (other === pid ? self : undefined),
      bootId: () => "b",
      hostName: () => "host",
    },
  };
}
