/** Tests that only addresses of web pages become links, and that their host is the real one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findLinks, webAddress } from "./links";

const links = (text: string) => findLinks(text).flatMap((piece) => (piece.kind === "link" ? [piece] : []));

test("other schemes are never links", () => {
  for (const text of ["javascript:alert(1)", "[x](javascript:alert(1))", "data:text/html,<b>", "vbscript:x", "file:///etc/passwd"]) {
    assert.deepEqual(links(text), [], text);
  }
  assert.equal(webAddress("javascript:alert(1)"), null);
  assert.equal(webAddress(" java\nscript:alert(1)"), null);
});

test("a host of another script is shown as punycode", () => {
  assert.equal(links("see https://аpple.com/x now")[0]?.host, "xn--pple-43d.com");
});

test("a user name does not hide the host", () => {
  assert.equal(links("https://github.com@evil.example/x")[0]?.host, "evil.example");
});

test("punctuation behind an address is text", () => {
  const pieces = findLinks("Look (https://a.example/b). Done");
  assert.deepEqual(pieces.map((piece) => piece.text), ["Look (", "https://a.example/b", "). Done"]);
});

test("Markdown images stay text", () => {
  const pieces = findLinks("![x](https://evil.example/p.png)");
  assert.equal(pieces.map((piece) => piece.text).join(""), "![x](https://evil.example/p.png)");
});
