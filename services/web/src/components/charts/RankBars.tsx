/** Horizontal bars, the greatest first, with their names and numbers in words beside them. */
import { Link } from "../../base/router";
import { AgentText } from "../AgentText";
import { type ChartProps, type ChartRow, ChartTable } from "./ChartTable";

const SHOWN = 8;

/** Renders the bars of the first series that has a number, such as tokens where nothing has a price. The table has all. */
export function RankBars({ title, summary, rows, series, format }: ChartProps) {
  const most = (at: number) => Math.max(0, ...rows.map(({ values }) => values[at] ?? 0));
  const tone = series[0]?.tone ?? "one";
  const shown = series.findIndex((_, at) => most(at) > 0);
  return (
    <figure className="chart panel">
      <figcaption>
        <h2>{title}</h2>
        <span className="muted"><AgentText text={summary} form="inline" /></span>
      </figcaption>
      {shown < 0 && <p className="chart-none muted">Nothing in this time.</p>}
      {shown >= 0 && (
        <ul className="rank-bars">
          {rows.slice(0, SHOWN).map((row) => (
            <li key={row.label}>
              <span className="rank-name"><Name row={row} /></span>
              <span className="num">{wordsOf(row, shown, format)} {shown > 0 && series[shown]?.name.toLowerCase()}</span>
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect className="chart-track" width={100} height={8} />
                <rect className={`tone-${tone}`} width={Math.max(0, ((row.values[shown] ?? 0) / most(shown)) * 100)} height={8} />
              </svg>
            </li>
          ))}
        </ul>
      )}
      {rows.length > SHOWN && shown >= 0 && <p className="hint">{rows.length - SHOWN} more are in the table.</p>}
      {shown >= 0 && <ChartTable title={title} rows={rows} series={series} format={format} />}
    </figure>
  );
}

function wordsOf({ values, exact }: ChartRow, at: number, format: ChartProps["format"]): string {
  return exact?.[at] ?? format(values[at] ?? 0);
}

function Name({ row }: { row: ChartRow }) {
  const name = <AgentText text={row.label} form="inline" />;
  return row.to === undefined ? name : <Link to={row.to}>{name}</Link>;
}
