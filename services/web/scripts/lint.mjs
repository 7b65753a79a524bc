// Checks the bounds of the sources: length of files and functions, no `any`, no HTML from text, no inline styles, a comment at
// the head of each module and of each exported item, and no import of a layer above.
import { readdir, readFile } from "node:fs/promises";
import ts from "typescript";
import { checkImports, importsOf } from "./imports.mjs";

const SOURCES = new URL("../src/", import.meta.url);
const MAX_LINES = 200;
const MAX_COLUMNS = 140;
// Markup counts: a component is mostly that.
const MAX_FUNCTION = 60;
const MAX_PARAMETERS = 5;
const GENERATED = "api/schema.d.ts";
const FORBIDDEN = [
  [/:\s*any\b|\bas any\b|<any>|\bany\[\]/, "`any`: name the type, or use `unknown`"],
  [/dangerouslySetInnerHTML|\.innerHTML|insertAdjacentHTML|document\.write/, "HTML made of text: use elements"],
  [/\beval\(|new Function\(/, "code made of text"],
  [/\sstyle=/, "inline style, which the content security policy refuses: use a class"],
  [/localStorage\.setItem|sessionStorage/, "storage: only app/theme.ts keeps a choice"],
  [/@ts-ignore|@ts-nocheck|eslint-disable/, "a switched-off check"],
  [/console\.(log|debug|info)/, "output on the console"],
];
const EXPORTED = /^export (default )?(async )?(function|const|class|interface|type|enum) /;
const ALLOWED = { "app/theme.ts": "storage", "components/VirtualList.tsx": "inline style" };

const problems = [];
const imports = new Map();
for (const file of (await readdir(SOURCES, { recursive: true })).sort()) {
  if (!/\.(tsx?|css)$/.test(file) || file === GENERATED) continue;
  check(file, (await readFile(new URL(file, SOURCES), "utf8")).split("\n"));
}
checkImports(imports, (file, line, what) => problems.push(`src/${file}:${line + 1}: ${what}`));
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}

function check(file, lines) {
  const report = (line, what) => problems.push(`src/${file}:${line + 1}: ${what}`);
  if (lines.length - 1 > MAX_LINES) report(lines.length - 1, `more than ${MAX_LINES} lines: divide the file`);
  lines.forEach((line, index) => {
    if (line.length > MAX_COLUMNS) report(index, `more than ${MAX_COLUMNS} columns`);
  });
  if (file.endsWith(".css")) return;
  if (!lines[0].startsWith("/**")) report(0, "no comment at the head that says what the module does");
  const kind = file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(file, lines.join("\n"), ts.ScriptTarget.ESNext, true, kind);
  checkFunctions(source, report);
  imports.set(file, importsOf(source));
  const isTest = /\.test\.tsx?$/.test(file);
  lines.forEach((line, index) => {
    for (const [pattern, what] of FORBIDDEN) {
      if (file in ALLOWED && what.startsWith(ALLOWED[file])) continue;
      if (pattern.test(line) && !isTest && !/^\s*(\/\*|\*|\/\/)/.test(line)) report(index, what);
    }
    const previous = lines[index - 1]?.trim() ?? "";
    if (!isTest && EXPORTED.test(line) && !previous.endsWith("*/")) report(index, "exported without a comment");
  });
}

function checkFunctions(source, report) {
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body) {
      const first = lineOf(node.getStart());
      if (lineOf(node.end) - first + 1 > MAX_FUNCTION) report(first, `a function of more than ${MAX_FUNCTION} lines: divide it`);
      if (node.parameters.length > MAX_PARAMETERS) report(first, `more than ${MAX_PARAMETERS} parameters`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}
