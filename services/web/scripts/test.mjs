// Runs the unit tests, `*.test.ts` and `*.test.tsx` below src, with Node's test runner: each file in a process of its own,
// so that no mocked timer is another's. Vite compiles them.
import { spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const outDir = `${root}node_modules/.tests`;
const files = (await readdir(`${root}src`, { recursive: true })).filter((file) => /\.test\.tsx?$/.test(file)).sort();
if (files.length === 0) throw new Error("no unit test found below src");
const input = Object.fromEntries(files.map((file) => [file.replace(/\.tsx?$/, "").replaceAll("/", "."), `${root}src/${file}`]));
await build({
  root,
  logLevel: "warn",
  build: { ssr: true, outDir, emptyOutDir: true, rolldownOptions: { input, output: { entryFileNames: "[name].mjs" } } },
});
const compiled = Object.keys(input).map((name) => `${outDir}/${name}.mjs`);
const { status } = spawnSync(process.execPath, ["--test", ...compiled], { stdio: "inherit", cwd: root });
process.exitCode = status ?? 1;
