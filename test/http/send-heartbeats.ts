// Sends heartbeats over HTTP at a steady 1,000 a second, whether or not the answers keep up, and says how long each took.
import { Agent, request } from "node:http";

export interface Flood {
  readonly url: string;
  readonly token: string;
  readonly missions: readonly string[];
  readonly count: number;
}

/** Times in milliseconds from the moment each was due, shortest first. Any answer but 202 is an error. */
export async function sendHeartbeats({ url, token, missions, count }: Flood): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const { port } = new URL(url);
  const begun = performance.now();
  const send = (mission: string, dueMs: number) =>
    new Promise<number>((resolve, reject) => {
      const asked = request(
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
            if (response.statusCode === 202) resolve(performance.now() - begun - dueMs);
            else reject(new Error(`the heartbeat of ${mission} was answered with ${response.statusCode}`));
          });
        },
      );
      asked.on("error", reject);
      asked.end();
    });
  const answers: Promise<number>[] = [];
  while (answers.length < count) {
    const due = Math.min(count, Math.floor(performance.now() - begun));
    while (answers.length < due)
      answers.push(send(missions[answers.length % missions.length]!, answers.length));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const times = await Promise.all(answers);
  agent.destroy();
  return times.sort((a, b) => a - b);
}
