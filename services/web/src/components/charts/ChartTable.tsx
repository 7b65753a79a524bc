/** Table with the numbers of a chart, in a disclosure. */
import { AgentText } from "../AgentText";
import type { ChartProps } from "./chart";

/** Renders the table. */
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
