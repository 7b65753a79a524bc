// Adds up what the browser loads for each page, compressed, and fails if a page other than the chat has more than the given kB.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const DIST = new URL("../dist/", import.meta.url);
const max = Number(process.argv[2]) * 1000;
const manifest = JSON.parse(await readFile(new URL(".vite/manifest.json", DIST), "utf8"));
const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);

function filesOf(name, found = new Set()) {
  const chunk = manifest[name];
  if (chunk === undefined || found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const style of chunk.css ?? []) found.add(style);
  for (const needed of chunk.imports ?? []) filesOf(needed, found);
  return found;
}

async function size(files) {
  const parts = await Promise.all([...files].map(async (file) => gzipSync(await readFile(new URL(file, DIST))).length));
  return parts.reduce((sum, part) => sum + part, 0);
}

let isTooLarge = false;
for (const page of [entry, ...(manifest[entry].dynamicImports ?? [])]) {
  const bytes = await size(new Set([...filesOf(entry), ...filesOf(page)]));
  const isChat = /pages\/chat/.test(page);
  const verdict = bytes > max && !isChat ? "  TOO LARGE" : "";
  isTooLarge ||= verdict !== "";
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${page}${verdict}`);
}
if (isTooLarge) process.exit(1);
