/** Stacked columns over time, with a legend, and a table of the same numbers for those who do not see them. */
import { AgentText } from "../AgentText";
import { type ChartProps, ChartTable } from "./ChartTable";

const STEP = 10;
const GAP = 2;
const HEIGHT = 100;

/** Renders the chart. The drawing stretches with the window, and its words stay beside it, so that none is distorted. */
export function Columns({ title, summary, rows, series, format }: ChartProps) {
  const sums = rows.map(({ values }) => values.reduce((sum, value) => sum + Math.max(0, value), 0));
  const most = Math.max(0, ...sums);
  return (
    <figure className="chart panel">
      <figcaption>
        <h2>{title}</h2>
        <span className="muted"><AgentText text={summary} form="inline" /></span>
      </figcaption>
      {series.length > 1 && (
        <ul className="chart-legend">
          {series.map(({ name, tone }) => (
            <li key={name}>
              <svg viewBox="0 0 10 10" aria-hidden="true"><rect className={`tone-${tone}`} width={10} height={10} /></svg> {name}
            </li>
          ))}
        </ul>
      )}
      {most === 0 ? (
        <p className="chart-none muted">Nothing in this time.</p>
      ) : (
        <>
          <span className="chart-most">{format(most)}</span>
          <svg
            className="chart-columns" role="img" aria-label={`${title}: ${summary}`} preserveAspectRatio="none"
            viewBox={`0 0 ${rows.length * STEP} ${HEIGHT}`}
          >
            {rows.map(({ label, values }, index) => (
              <g key={label}>
                <title>{`${label}: ${values.map((value, at) => `${format(value)} ${series[at]?.name ?? ""}`).join(", ")}`}</title>
                <rect className="chart-hover" x={index * STEP} width={STEP} height={HEIGHT} />
                {stack(values, most).map(({ y, height }, at) => (
                  <rect
                    key={series[at]?.name ?? at} className={`tone-${series[at]?.tone ?? "one"}`}
                    x={index * STEP + GAP / 2} y={y} width={STEP - GAP} height={height}
                  />
                ))}
              </g>
            ))}
          </svg>
          <div className="chart-axis" aria-hidden="true">
            <span>{rows[0]?.label}</span>
            <span>{rows[Math.floor(rows.length / 2)]?.label}</span>
            <span>{rows.at(-1)?.label}</span>
          </div>
        </>
      )}
      <ChartTable title={title} rows={rows} series={series} format={format} />
    </figure>
  );
}

/** Returns where the parts of one column are, from the bottom up. A negative value has no height. */
function stack(values: number[], most: number): { y: number; height: number }[] {
  let top = HEIGHT;
  return values.map((value) => {
    const height = (Math.max(0, value) / most) * HEIGHT;
    top -= height;
    return { y: top, height };
  });
}
