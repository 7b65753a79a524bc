/** Tests how the files of an agent are named, and which of them have an address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { canOpen, crumbs, dirLink, directoriesFirst, fileAddress, kindOf, nameOf, parentOf, readDir } from "./workspace";

test("an address names a directory without empty parts", () => {
  assert.deepEqual([null, "", "/", "src", "/src//a/", "../x"].map(readDir), ["", "", "", "src", "src/a", "../x"]);
});

test("the way to a directory begins with that of the agent", () => {
  assert.deepEqual(crumbs("", null), [{ name: "Files of the agent", dir: "" }]);
  assert.deepEqual(crumbs("src/a b", "agent:bot:k1"), [
    { name: "Files of the session", dir: "" }, { name: "src", dir: "src" }, { name: "a b", dir: "src/a b" },
  ]);
});

test("a path has the directory that it lies in", () => {
  assert.deepEqual(["", "a", "a/b", "a/b/c"].map(parentOf), ["", "", "a", "a/b"]);
});

test("an entry has its own name, and a directory is seen by it", () => {
  const of = (path: string, type: string) => nameOf({ path, type });
  assert.deepEqual([of("a", "file"), of("src/main.rs", "file"), of("src/a", "directory"), of("b", "link")], ["a", "main.rs", "a/", "b"]);
});

test("kinds are words, also those of a later version", () => {
  const of = (type: string) => kindOf({ path: "a", type });
  assert.deepEqual(["file", "directory", "link", "special", "odd"].map(of), [
    "file", "directory", "link, not followed", "special, not read", "odd",
  ]);
  assert.equal(kindOf({ path: "a\ufffd", type: "file" }), "file, not opened: its name is not UTF-8");
});

test("directories come first, and else the order stays", () => {
  const of = (path: string, type: string) => ({ path, type, size: null });
  const sorted = directoriesFirst([of("a", "file"), of("b", "directory"), of("c", "link"), of("d", "directory"), of("e", "file")]);
  assert.equal(sorted.map((entry) => entry.path).join(""), "bdace");
});

test("links, special entries, and names that are not UTF-8 are not opened", () => {
  const of = (path: string, type: string) => canOpen({ path, type });
  const kinds = ["file", "directory", "link", "special", "odd"];
  assert.deepEqual(kinds.map((type) => of("a", type)), [true, true, false, false, false]);
  assert.deepEqual([of("a\ufffd", "file"), of("\ufffd/b", "directory")], [false, false]);
});

test("addresses keep slashes between the parts of a path, and escape all else", () => {
  const agent = { gateway: "a/b", id: "bot" };
  const own = "/api/v1/gateways/a%2Fb/agents/bot/workspace/src/%C3%A4%20%3F%23%25.rs";
  assert.equal(fileAddress(agent, null, "src/ä ?#%.rs"), own);
  assert.equal(fileAddress(agent, "agent:bot:k1", "src/ä ?#%.rs"), `${own}?session=agent%3Abot%3Ak1`);
  assert.deepEqual([dirLink("", null), dirLink("src/a&b", null)], ["?tab=files", "?tab=files&dir=src%2Fa%26b"]);
  assert.equal(dirLink("src", "agent:bot:k1"), "?tab=files&session=agent%3Abot%3Ak1&dir=src");
});
