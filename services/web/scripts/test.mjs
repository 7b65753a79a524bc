// Runs the unit tests, `*.test.ts` and `*.test.tsx` below src, with Node's test runner. Vite compiles them.
import { readdir } from "node:fs/promises";
import { createServer } from "vite";

const vite = await createServer({ appType: "custom", logLevel: "error", server: { middlewareMode: true, hmr: false, watch: null } });

const files = (await readdir(new URL("../src", import.meta.url), { recursive: true }))
  .filter((file) => /\.test\.tsx?$/.test(file))
  .sort();
if (files.length === 0) throw new Error("no unit test found below src");
for (const file of files) await vite.ssrLoadModule(`/src/${file}`);
await vite.close();
