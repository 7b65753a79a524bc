// Draws a recorded terminal as an SVG: each row for as long as it was on the screen, animated by CSS alone.
// Readers who want no motion see the last screen. Colours follow the reader's scheme.

const CELL = { width: 7.2, height: 17 };
const MARGIN = 14;
const COLOURS = { 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan" };
const STYLE = `
svg{--back:#f6f8fa;--text:#1f2328;--dim:#636c76;--red:#cf222e;--green:#1a7f37;--yellow:#9a6700;--blue:#0969da;--magenta:#8250df;--cyan:#1b7c83}
@media (prefers-color-scheme:dark){svg{--back:#0d1117;--text:#e6edf3;--dim:#8d96a0;--red:#ff7b72;--green:#3fb950;--yellow:#d29922;--blue:#58a6ff;--magenta:#bc8cff;--cyan:#39c5cf}}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--text)}
.back{fill:var(--back);stroke:var(--dim);stroke-opacity:.35}.bold{font-weight:700}.dim{fill:var(--dim)}
.bar{fill:var(--text)}.inverse{fill:var(--back)}
${Object.values(COLOURS).map((name) => `.${name}{fill:var(--${name})}`).join("")}
.row{visibility:hidden}.last{visibility:visible}`;

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const short = (number) => String(Number(number.toFixed(2)));

// Changes the classes of the text by the codes of one escape sequence.
function applied(classes, codes) {
  const next = new Set(classes);
  for (const code of codes.split(";").map(Number)) {
    if (code === 0) next.clear();
    else if (code === 1) next.add("bold");
    else if (code === 2) next.add("dim");
    else if (code === 7) next.add("inverse");
    else if (code === 39) Object.values(COLOURS).forEach((name) => next.delete(name));
    else if (COLOURS[code]) next.add(COLOURS[code]);
  }
  return next;
}

// Splits a screen into rows of pieces: text, its column and its classes.
function rowsOf(screen) {
  let classes = new Set();
  return screen.split("\n").map((line) => {
    const pieces = [];
    let column = 0;
    for (const part of line.split(/(\x1b\[[\d;]*m)/)) {
      const codes = part.match(/^\x1b\[([\d;]*)m$/);
      if (codes) {
        classes = applied(classes, codes[1]);
      } else if (part) {
        pieces.push({ text: part, column, classes: [...classes] });
        column += part.length;
      }
    }
    return pieces.filter((piece) => piece.text.trim() || piece.classes.includes("inverse"));
  });
}

// Returns the elements of one piece of a row. Words that two spaces part are elements of their own, since a space may be lost.
function drawn({ text, column, classes }, row) {
  const y = MARGIN + row * CELL.height;
  const at = (index) => short(MARGIN + (column + index) * CELL.width);
  const style = classes.length ? ` class="${classes.join(" ")}"` : "";
  const words = [...text.matchAll(/\S+(?: \S+)*/g)].map(({ 0: shown, index }) => {
    const length = short(shown.length * CELL.width);
    return `<text x="${at(index)}" y="${short(y + 13)}" textLength="${length}"${style}>${escaped(shown)}</text>`;
  });
  if (!classes.includes("inverse")) return words.join("");
  return `<rect class="bar" x="${at(0)}" y="${short(y)}" width="${short(text.length * CELL.width)}" height="${CELL.height}"/>${words.join("")}`;
}

// Returns each row's content with the time for which it stood there.
function spans(frames, { rows, end }) {
  const found = [];
  const open = new Map();
  for (const frame of [...frames, { at: end, screen: null }]) {
    const now = frame.screen === null ? [] : rowsOf(frame.screen);
    for (let row = 0; row < rows; row += 1) {
      const content = (now[row] ?? []).map((piece) => drawn(piece, row)).join("");
      const before = open.get(row);
      if (frame.screen !== null && before?.content === content) continue;
      if (before?.content) found.push({ ...before, to: frame.at, isLast: frame.screen === null });
      open.set(row, { content, from: frame.at });
    }
  }
  return found;
}

// Returns the SVG of frames `{at, screen}`, in milliseconds, that ends at `end`.
export function svg(frames, { columns, rows, end }) {
  const begin = frames[0].at;
  const length = end - begin;
  const groups = new Map();
  for (const span of spans(frames, { rows, end })) {
    const key = `${span.from}-${span.to}`;
    groups.set(key, [...(groups.get(key) ?? []), span]);
  }
  const percent = (time) => `${short(((time - begin) / length) * 100)}%`;
  const rules = [];
  const drawings = [];
  for (const [index, group] of [...groups.values()].entries()) {
    const { from, to, isLast } = group[0];
    const first = from === begin ? "" : "0%{visibility:hidden}";
    const last = isLast ? "" : `${percent(to)}{visibility:hidden}`;
    rules.push(`@keyframes k${index}{${first}${percent(from)}{visibility:visible}${last}${isLast ? "100%{visibility:visible}" : "100%{visibility:hidden}"}}`);
    rules.push(`.k${index}{animation-name:k${index}}`);
    drawings.push(`<g class="row${isLast ? " last" : ""} k${index}">${group.map(({ content }) => content).join("")}</g>`);
  }
  const width = short(2 * MARGIN + columns * CELL.width);
  const height = short(2 * MARGIN + rows * CELL.height);
  const motion = `@media (prefers-reduced-motion:no-preference){.row{animation:${short(length / 1000)}s step-end infinite}${rules.join("")}}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    "<title>A terminal with sluice run, sluice audit trace and sluice audit top</title>",
    `<style>${STYLE}\n${motion}</style>`,
    `<rect class="back" x=".5" y=".5" width="${short(width - 1)}" height="${short(height - 1)}" rx="8"/>`,
    ...drawings, "</svg>\n",
  ].join("\n");
}
