import { VERSION } from "../../../platform/version.ts";
import { type AnyCommand, defineCommand } from "../../command.ts";
import type { Catalogue } from "../../find-command.ts";

/** Takes the catalogue as an argument, because the catalogue itself lists this command. */
export function createMcpCommand(catalogue: Catalogue): AnyCommand {
  return defineCommand({
    about:
      "An MCP server on stdin and stdout, for an agent's CLI to start: checkpoint, list, diff, versions of a file, restore one " +
      "file, flows, once, effects, status. It serves one mission: that of the agent that starts it, or of the protected " +
      "directory in which it is started. Restoring everything is refused; only a human can do that.",
    positionals: [],
    options: {},
    examples: [["lazarus mcp", "what an MCP client runs"]],
    exits: ["missing"],
    async run(context) {
      const { createServer } = await import("../../mcp/server.ts");
      const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
      const server = createServer(catalogue, context, VERSION);
      const closed = new Promise<void>((resolve) => {
        server.server.onclose = resolve;
        context.signal.addEventListener("abort", () => resolve());
        process.stdin.once("end", () => resolve());
      });
      await server.connect(new StdioServerTransport());
      await closed;
      await server.close();
      return 0;
    },
  });
}
