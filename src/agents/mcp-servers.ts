// Our MCP server in the format that most CLIs have for servers of one run. Pure.

/** `{"mcpServers":{"lazarus":{…}}}`; `command` runs `lazarus mcp`. */
export function mcpServers([program = "", ...args]: readonly string[], more: object = {}): string {
  return JSON.stringify({ mcpServers: { lazarus: { ...more, command: program, args } } });
}

/** What `lazarus mcp` needs of the agent's environment, for a CLI that passes on only what is named. */
export const MCP_VARIABLES = [
  "LAZARUS_HOME",
  "LAZARUS_CONFIG",
  "LAZARUS_MISSION",
  "LAZARUS_EPOCH",
  "LAZARUS_LIFE",
];
