// Sends heartbeats over HTTP at a steady rate, whether or not the responses keep up, and measures each response time.
import { Agent, request } from "node:http";

export interface Load {
  readonly url: string;
  readonly token: string;
  readonly missions: readonly string[];
  readonly count: number;
  readonly perSecond: number;
}

/** Milliseconds from the moment each heartbeat was due, shortest first. Any status but 202 is an error. */
export async function sendHeartbeats(load: Load): Promise<number[]> {
  const { url, token, missions, count, perSecond } = load;
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const { port } = new URL(url);
  const startedMs = performance.now();
  const send = (mission: string, dueMs: number) =>
    new Promise<number>((resolve, reject) => {
      const outgoing = request(
        {
          host: "127.0.0.1",
          port,
          agent,
          method: "POST",
          path: `/v1/missions/${mission}/heartbeat`,
          headers: { authorization: `Bearer ${token}`, "content-length": 0 },
        },
        (response) => {
          response.resume();
          response.on("end", () => {
            if (response.statusCode === 202) resolve(performance.now() - startedMs - dueMs);
            else reject(new Error(`the heartbeat of ${mission} was answered with ${response.statusCode}`));
          });
        },
      );
      outgoing.on("error", reject);
      outgoing.end();
    });
  const responses: Promise<number>[] = [];
  while (responses.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - startedMs) * perSecond) / 1000));
    while (responses.length < due) {
      const n = responses.length;
      responses.push(send(missions[n % missions.length]!, (n * 1000) / perSecond));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const times = await Promise.all(responses);
  agent.destroy();
  return times.sort((a, b) => a - b);
}
