// The MCP server: tools for one mission, on stdio. Two tools are not plain commands: effects reads the history, and restore_file
// saves a checkpoint first and then replaces one file, since only a human may restore under a running agent.
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { refuseOutside } from "../../cell/mission-id.ts";
import { openHistory } from "../../effects/history.ts";
import { effectsAfter } from "../../effects/notes.ts";
import { makeDirectory, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { CliContext } from "../context.ts";
import type { Catalogue } from "../find-command.ts";
import { cellPathOf, findOwnMission, type OwnMission } from "./own-mission.ts";
import { type Captured, runInMemory } from "./run-in-memory.ts";
import { TOOLS } from "./tools.ts";

export function createServer(catalogue: Catalogue, context: CliContext, version: string): McpServer {
  const own = findOwnMission(context);
  const run = (words: readonly string[]) => runInMemory(catalogue, context, words);
  const server = new McpServer(
    { name: "lazarus", version },
    { instructions: `Checkpoints, versions of files, flows and effects of the mission ${own.mission}.` },
  );
  for (const [name, spec] of Object.entries(TOOLS)) {
    const { title, description, input: inputSchema, readOnly: readOnlyHint } = spec;
    const annotations = {
      readOnlyHint,
      ...(readOnlyHint ? {} : { destructiveHint: spec.destructive === true }),
    };
    server.registerTool(name, { title, description, inputSchema, annotations }, (input) =>
      catchFailure(async () => toResult(await run(spec.words(own, input as Record<string, never>)))),
    );
  }
  server.registerTool(
    "effects",
    {
      title: "What was done to the outside world",
      description:
        "Commands and tool calls with effects outside of the files: done, failed or of unknown outcome. Restoring files does not undo them.",
      inputSchema: {},
      annotations: { readOnlyHint: true },
    },
    () =>
      catchFailure(async () =>
        json({ effects: effectsAfter(openHistory(context.machine, own.cellRoot).read(), 0) }),
      ),
  );
  server.registerTool(
    "restore_file",
    {
      title: "Restore one file",
      description:
        "Restores one file from a checkpoint. A checkpoint of the current state is taken first. Only a human can restore everything.",
      inputSchema: {
        path: z.string().describe("a file, absolute or relative to the working directory"),
        checkpoint: z.string().describe("a checkpoint: its id, or a time such as 10m; see search_versions"),
      },
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    },
    ({ path, checkpoint }) => catchFailure(() => restoreFile(context, own, run, path, checkpoint)),
  );
  return server;
}

/** The part of `ls --json` that a restore needs. */
interface Listing {
  readonly entries: readonly { readonly mode: number }[];
}

async function restoreFile(
  { machine }: CliContext,
  own: OwnMission,
  run: (words: readonly string[]) => Promise<Captured>,
  path: string,
  checkpoint: string,
): Promise<CallToolResult> {
  const name = cellPathOf(own, path);
  const target = join(own.worktree, name.slice("worktree/".length));
  const stat = lstatSync(target, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile())
    throw new LazarusError("USAGE", `${target} is not a regular file`, {
      hint: `a person can restore it: lazarus restore ${own.mission} ${checkpoint} --path ${name} --stop`,
    });
  const content = await run(["cat", "--", `${own.mission}:${checkpoint}`, name]);
  if (content.failure !== undefined) return toResult(content);
  const listed = await run(["ls", "--json", "--", `${own.mission}:${checkpoint}`, name]);
  if (listed.failure !== undefined) return toResult(listed);
  const { mode } = (JSON.parse(listed.stdout.toString("utf8")) as Listing).entries[0]!;
  const saved = await run(["checkpoint", "--json", "--message=before restore_file", "--", own.mission]);
  if (saved.failure !== undefined) return toResult(saved);
  if (dirname(target) !== own.worktree) {
    // A directory on the path may be a link.
    for (let above = dirname(target); above !== own.worktree; above = dirname(above))
      refuseOutside(own.worktree, above);
    makeDirectory(machine.disk, dirname(target), 0o755);
  }
  replaceFile(machine.disk, target, content.stdout, { mode: mode & 0o777 });
  return json({ restored: target, from: checkpoint, before: JSON.parse(saved.stdout.toString("utf8")) });
}

/** A tool never breaks the connection: a failure is a result that the model can read. */
async function catchFailure(work: () => Promise<CallToolResult>): Promise<CallToolResult> {
  try {
    return await work();
  } catch (error) {
    const { message, hint } = asLazarusError(error, "lazarus mcp");
    return toFailure(message, hint);
  }
}

function toResult({ exit, stdout, stderr, failure }: Captured): CallToolResult {
  if (failure !== undefined) return toFailure(failure.message, failure.hint);
  // Separate parts, so that a model that copies a file from the result does not copy our messages.
  const texts = [stdout.toString("utf8"), stderr, exit === 0 ? "" : `exit code ${exit}`];
  const content = texts
    .filter((text, n) => text !== "" || (n === 0 && exit === 0))
    .map((text) => ({ type: "text" as const, text }));
  return { content, ...(exit === 0 ? {} : { isError: true }) };
}

function toFailure(message: string, hint: string | undefined): CallToolResult {
  const text = hint === undefined ? message : `${message}\ntry: ${hint}`;
  return { content: [{ type: "text", text }], isError: true };
}

function json(value: unknown): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }] };
}
