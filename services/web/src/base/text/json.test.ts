/** Tests that JSON is spread over lines, and otherwise stays as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { spreadJson } from "./json";

test("json is spread over lines", () => {
  const spread = spreadJson('{"a":[1,{"b":null}],"c":{},"d":[ ]}');
  assert.equal(spread, '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {},\n  "d": []\n}');
});

test("strings stay as they are", () => {
  for (const text of ['"{,:}"', '"a\\"b{"', '"\\\\"', '"\u202e, x"']) assert.equal(spreadJson(text), text);
});

test("doubled keys and long numbers stay visible", () => {
  const shown = spreadJson('{"path":"/safe","path":"/etc","n":12345678901234567890}');
  assert.match(shown, /"path": "\/safe",\n {2}"path": "\/etc"/);
  assert.match(shown, /12345678901234567890/);
});

test("what is not json is not lost", () => {
  for (const text of ["{", '"open', "\\", "]]]", "}{"]) {
    assert.equal(spreadJson(text).replace(/\s/g, ""), text);
  }
});
