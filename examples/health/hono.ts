// Health and heartbeats inside a Hono app: a middleware that answers its own paths and passes on the rest.
//
//   TOKEN=… node examples/health/hono.ts /var/missions 8080
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { createHealthHandler } from "lazarus/health";

const [missionsRoot = "/var/missions", port = "8080"] = process.argv.slice(2);
const token = process.env.TOKEN;
const health = createHealthHandler({ missionsRoot, ...(token ? { token } : {}) });

const app = new Hono();
app.use(async (context, next) => (await health(context.req.raw)) ?? next());
app.get("/", (context) => context.text("the gateway's own page\n"));

serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" }, (address) => {
  console.log(`listening on ${address.port}`);
});
