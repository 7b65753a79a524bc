/** Horizontal bars on one scale, with a table of the same numbers for those who do not see them. */
import { formatDuration } from "../base/text/format";
import { visibleText } from "../base/text/marks";
import { AgentText, cutAt } from "./AgentText";

/** Bar from `start` to `end`, in milliseconds from the beginning. */
export interface Bar {
  label: string;
  start: number;
  end: number;
  tone: "phase" | "call" | "tool" | "wait" | "bad";
}

const ROW = 22;
const LABEL = 150;
const WIDTH = 900;

/** Renders the bars, and the table in a disclosure. */
export function SvgBars({ label, bars }: { label: string; bars: Bar[] }) {
  const total = Math.max(1, ...bars.map((bar) => bar.end));
  const x = (ms: number) => LABEL + (ms / total) * (WIDTH - LABEL - 90);
  return (
    <figure className="bars">
      <svg viewBox={`0 0 ${WIDTH} ${bars.length * ROW + 4}`} role="img" aria-label={label}>
        {bars.map((bar, index) => (
          <g key={index} transform={`translate(0 ${index * ROW})`}>
            <text x={LABEL - 8} y={15} textAnchor="end">{cutAt(visibleText(bar.label), 22)}</text>
            <rect
              className={`bar-${bar.tone}`} x={x(bar.start)} y={5} height={12} rx={2}
              width={Math.max(2, x(bar.end) - x(bar.start))}
            />
            <text className="bar-time" x={x(bar.end) + 6} y={15}>{formatDuration(bar.end - bar.start)}</text>
          </g>
        ))}
      </svg>
      <details>
        <summary>As a table</summary>
        <table>
          <thead>
            <tr><th scope="col">Part</th><th scope="col" className="num">Began after</th><th scope="col" className="num">Took</th></tr>
          </thead>
          <tbody>
            {bars.map((bar, index) => (
              <tr key={index}>
                <td><AgentText text={bar.label} form="inline" /></td>
                <td className="num">{formatDuration(bar.start)}</td>
                <td className="num">{formatDuration(bar.end - bar.start)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
