// The minimal heartbeat server: node:http, no checks, nothing stored. Prints its port.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => response.writeHead(202, { "content-type": "application/json" }).end("{}"));
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
