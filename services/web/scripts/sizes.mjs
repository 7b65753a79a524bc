// Adds up what the browser loads for each page, compressed, and fails if a page other than the chat has more than the given kB.
// A chunk that a page imports lazily counts as well, unless it is shown only when a person asks for it.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const ON_DEMAND = new Set([
  ...["account/CreditDialog", "account/LimitsDialog", "account/Receipts", "account/Statement", "FreezeConfirm"]
    .map((name) => `src/pages/money/${name}.tsx`),
  ...["Ask", "Calls", "Events", "Failure", "Git", "Output", "Receipts", "Refusals", "Timeline", "Tools"]
    .map((name) => `src/pages/runs/run/${name}.tsx`),
  ...["Behaviour", "NewAgent", "Remove", "Sessions", "ToolAccess", "Workspace"].map((name) => `src/pages/tools/studio/${name}.tsx`),
]);
const DIST = new URL("../dist/", import.meta.url);
const max = Number(process.argv[2]) * 1000;
const manifest = JSON.parse(await readFile(new URL(".vite/manifest.json", DIST), "utf8"));
const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);

/** Returns the chunks that come with `name`: those that it needs, and with `lazy` those that it imports lazily and shows at once. */
function chunksOf(name, lazy, found = new Set()) {
  const chunk = manifest[name];
  if (chunk === undefined || found.has(name)) return found;
  found.add(name);
  for (const needed of chunk.imports ?? []) chunksOf(needed, lazy, found);
  for (const later of lazy ? (chunk.dynamicImports ?? []) : []) if (!ON_DEMAND.has(later)) chunksOf(later, lazy, found);
  return found;
}

async function size(chunks) {
  const files = new Set([...chunks].flatMap((name) => [manifest[name].file, ...(manifest[name].css ?? [])]));
  const parts = await Promise.all([...files].map(async (file) => gzipSync(await readFile(new URL(file, DIST))).length));
  return parts.reduce((sum, part) => sum + part, 0);
}

const unknown = [...ON_DEMAND].filter((name) => manifest[name] === undefined);
if (unknown.length > 0) {
  console.error(`no chunk of the build: ${unknown.join(", ")}; correct ON_DEMAND in scripts/sizes.mjs`);
  process.exit(1);
}
const base = chunksOf(entry, false);
const pages = [...base].flatMap((name) => manifest[name].dynamicImports ?? []);
let isTooLarge = false;
for (const page of [entry, ...pages]) {
  // What the entry imports lazily are the pages themselves.
  const own = page === entry ? [] : chunksOf(page, true, new Set(base));
  const bytes = await size(new Set([...base, ...own]));
  const isChat = /pages\/threads/.test(page);
  const verdict = bytes > max && !isChat ? "  TOO LARGE" : "";
  isTooLarge ||= verdict !== "";
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${page}${verdict}`);
}
if (isTooLarge) process.exit(1);
