// Checks imports: the folders of src are layers, and no import leads to a layer above, or around a circle.
import { posix } from "node:path";
import ts from "typescript";

/** Layers from the lowest one on. Each file imports from the layer that it lies in, and from those before it. */
const LAYERS = ["api", "base", "components", "pages", "app"];
const ENDINGS = ["", ".ts", ".tsx", "/index.tsx"];

/** Returns what a source imports of src, lazily and as types too: the line, and the path without its ending. */
export function importsOf(source) {
  const found = [];
  const visit = (node) => {
    const isLazy = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
    const name = isLazy ? node.arguments[0] : node.moduleSpecifier;
    if (name !== undefined && ts.isStringLiteral(name) && name.text.startsWith(".")) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      found.push({ line, path: posix.join(posix.dirname(source.fileName), name.text) });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Reports each import of a layer above, and each circle once. `imports` has the imports of each file. */
export function checkImports(imports, report) {
  const layerOf = (path) => path.split("/")[0];
  const paths = new Map();
  for (const [file, found] of imports) {
    const own = LAYERS.indexOf(layerOf(file));
    for (const { line, path } of found) {
      if (own >= 0 && LAYERS.indexOf(layerOf(path)) > own) report(file, line, `files of ${LAYERS[own]} import nothing of ${layerOf(path)}`);
    }
    paths.set(file, found.flatMap(({ line, path }) => {
      const target = ENDINGS.map((ending) => path + ending).find((name) => imports.has(name));
      return target === undefined ? [] : [{ line, target }];
    }));
  }
  const done = new Set();
  const follow = (file, way) => {
    if (done.has(file)) return;
    for (const { line, target } of paths.get(file)) {
      const at = [...way, file].indexOf(target);
      if (at >= 0) report(file, line, `a circle of imports: ${[...way, file, target].slice(at).join(", ")}`);
      else follow(target, [...way, file]);
    }
    done.add(file);
  };
  for (const file of paths.keys()) follow(file, []);
}
