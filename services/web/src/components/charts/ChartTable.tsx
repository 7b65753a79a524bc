/** Names what charts are made of, and shows it as a table. */
import { AgentText } from "../AgentText";

/** Colour of a series. Each has a name beside it, so that colour alone says nothing. */
export type SeriesTone = "one" | "two" | "good" | "bad" | "warn" | "idle";

/** What the numbers of one colour are. */
export interface Series {
  name: string;
  tone: SeriesTone;
}

/** Row of a chart: what it is of, and one number for each series. `exact` has texts for the table where numbers are rounded. */
export interface ChartRow {
  label: string;
  values: number[];
  exact?: string[];
  /** Address of what the row counts. */
  to?: string;
}

/** Properties of a chart. */
export interface ChartProps {
  title: string;
  /** The most important number, in words. */
  summary: string;
  rows: ChartRow[];
  series: Series[];
  format: (value: number) => string;
}

/** Renders the numbers of a chart as a table that can be opened. */
export function ChartTable({ title, rows, series, format }: Omit<ChartProps, "summary">) {
  if (rows.length === 0) return null;
  return (
    <details className="chart-table">
      <summary>As a table</summary>
      <div className="chart-scroll" tabIndex={0} role="region" aria-label={`Table: ${title}`}>
        <table aria-label={title}>
          <thead>
            <tr>
              <th scope="col">{title}</th>
              {series.map(({ name }) => <th key={name} scope="col" className="num">{name}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ label, values, exact }) => (
              <tr key={label}>
                <th scope="row"><AgentText text={label} form="inline" /></th>
                {values.map((value, at) => <td key={series[at]?.name ?? at} className="num">{exact?.[at] ?? format(value)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
