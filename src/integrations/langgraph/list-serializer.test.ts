import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createListSerializer, type ListSerializer } from "./list-serializer.ts";

const { serde } = new MemorySaver();
const expectSame = async (lists: ListSerializer, value: unknown) => {
  const { type, pieces } = await lists.dumpPieces(value);
  const [stockType, bytes] = await serde.dumpsTyped(value);
  expect(`${type} ${Buffer.concat(pieces)}`).toBe(`${stockType} ${Buffer.from(bytes)}`);
};

describe("list serializer", () => {
  test("equals LangGraph's serializer, even from the cache", async () => {
    const lists = createListSerializer(serde);
    const values = [
      [
        new HumanMessage("hi"),
        new AIMessage({ content: "yo", tool_calls: [{ id: "1", name: "t", args: { a: [1] } }] }),
      ],
      [new ToolMessage({ content: "r", tool_call_id: "1" }), { plain: { deep: [null, true, 1.5] } }],
      [new Map([["a", 1]]), new Set([1]), new Error("e"), /x/g],
      [new Uint8Array([1, 2])],
      [1, "two", undefined, null],
      [undefined],
      [],
      "text",
      { not: "a list" },
      [[1, [2]], [{}]],
      [{ gone: undefined, kept: 1 }],
    ];
    for (const value of values) {
      await expectSame(lists, value);
      await expectSame(lists, value);
    }
  });
  test("notices every change in place", async () => {
    const lists = createListSerializer(serde);
    const message = new AIMessage({
      content: [{ type: "text", text: "one" }],
      additional_kwargs: { a: { b: 1 } },
    });
    const hidden = new Map([["a", 1]]);
    const list = [message, { list: [1, 2] }, hidden];
    await lists.dumpPieces(list);
    const changes = [
      () => Object.assign((message.content as { text: string }[])[0]!, { text: "two" }),
      () => Object.assign(message.additional_kwargs, { c: 2 }),
      () => (list[1] as { list: number[] }).list.push(3),
      () => (list[1] as { list: number[] }).list.reverse(),
      () => delete (list[1] as Partial<{ list: number[] }>).list,
      () => hidden.set("a", 2),
      () => Object.assign(message, { id: "new" }),
    ];
    for (const change of changes) {
      change();
      await expectSame(lists, list);
    }
  });
  test("reuses the pieces of unchanged elements", async () => {
    const lists = createListSerializer(serde);
    const list = Array.from({ length: 50 }, (_, i) => new AIMessage(`said ${i}`));
    const { pieces } = await lists.dumpPieces(list);
    const longer = await lists.dumpPieces([...list, new AIMessage("more")]);
    expect(longer.pieces.slice(0, 100).every((piece, i) => piece === pieces[i])).toBe(true);
  });
  test("equals LangGraph's serializer for any JSON, even from the cache", async () => {
    const lists = createListSerializer(serde);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue()), async (value) => {
        await expectSame(lists, value);
        await expectSame(lists, value);
      }),
    );
  });
});
