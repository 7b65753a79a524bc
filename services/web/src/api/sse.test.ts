/** Tests the parser of server-sent events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "./sse";

test("events survive any division into pieces", () => {
  const stream = 'id: 3\ndata: {"a":1}\n\n: keep-alive\n\ndata: one\ndata: two\n\nid: 4\r\ndata: x\r\n\r\n';
  const whole = [
    { id: "3", data: '{"a":1}' },
    { id: null, data: "one\ntwo" },
    { id: "4", data: "x" },
  ];
  for (let at = 0; at <= stream.length; at += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.feed(stream.slice(0, at)), ...parser.feed(stream.slice(at))], whole, `divided at ${at}`);
  }
});

test("an event that is not complete is not delivered", () => {
  assert.deepEqual(new SseParser().feed("data: half"), []);
});
