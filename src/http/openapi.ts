// Generates the OpenAPI document from the route table and its zod schemas.
import { z } from "zod";
import { ERROR_CODES, type ErrorCode, LazarusError } from "../platform/errors.ts";
import type { Route } from "./route.ts";
import { errorBody, NAMED } from "./schemas.ts";

type Json = Record<string, unknown>;

/** Errors that every route can return. */
const ALWAYS: readonly ErrorCode[] = ["HOST_REFUSED", "INTERNAL"];

export function describeApi(routes: readonly Route[], version: string): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of NAMED) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    unrepresentable: "any",
  });
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method] = describeRoute(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Lazarus",
      version,
      description: "HTTP API of the Lazarus pit, on 127.0.0.1 and on a unix socket. See docs/http.md.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "http://127.0.0.1:7433" }],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, strip(schema as Json)])),
      securitySchemes: { token: { type: "http", scheme: "bearer", description: ABOUT_SCOPES } },
    },
  };
}

const ABOUT_SCOPES =
  "A token has the scope `read` or `operate`, which includes `read`; each operation names the one that it needs. A token " +
  "for a single mission is accepted where the path or the query names that mission. The token in run_dir/token allows " +
  "everything; `lazarus token create` makes others.";

function needsToken({ scope }: Route): boolean {
  return scope === "read" || scope === "operate";
}

function describeRoute(route: Route): Json {
  const { answer, body } = route;
  const content = answer.schema === undefined ? {} : { schema: refer(answer.schema) };
  return {
    operationId: `${route.method}${route.path.replaceAll(/[^A-Za-z0-9]+(\w?)/g, (_, next: string) => next.toUpperCase())}`,
    summary: route.summary,
    parameters: [...pathParameters(route.path), ...queryParameters(route)],
    ...(body === undefined
      ? {}
      : { requestBody: { content: { "application/json": { schema: refer(body) } } } }),
    responses: {
      [answer.status ?? 200]: { description: "success", content: { [answer.type]: content } },
      ...describeErrors(route),
    },
    security: needsToken(route) ? [{ token: [route.scope] }] : [],
  };
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query }: Route): Json[] {
  if (query === undefined) return [];
  const { properties = {} } = z.toJSONSchema(query, { io: "output", unrepresentable: "any" });
  return Object.entries(properties).map(([name, schema]) => ({ name, in: "query", schema }));
}

/** Error codes grouped by HTTP status. */
function describeErrors(route: Route): Json {
  const codes = [
    ...ALWAYS,
    ...(needsToken(route) ? (["TOKEN_REFUSED", "SCOPE_REFUSED", "ORIGIN_REFUSED"] as const) : []),
    ...route.errors,
  ];
  const byStatus = Map.groupBy(codes, (code) => new LazarusError(code, "").httpStatus);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((code) => `${code} (${ERROR_CODES[code]})`).join(", "),
        content: { "application/json": { schema: refer(errorBody) } },
      },
    ]),
  );
}

function refer(schema: z.ZodType): Json {
  return { $ref: `#/components/schemas/${schema.meta()?.id}` };
}

/** Removes keys that only apply to standalone schemas. */
function strip({ $schema: _, $id: __, ...rest }: Json): Json {
  return rest;
}
