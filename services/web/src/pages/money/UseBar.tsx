/** Bars of what is used, reserved and left of limits, with a table of the same numbers. */
import { type LimitRow, formatShare, nearnessOf } from "./limits";

/** Renders one bar. It only repeats numbers that stand beside it, so it has no name. A reserved part is half as high. */
export function UseBar({ row }: { row: LimitRow }) {
  const used = (row.usedShare ?? 0) * 100;
  const reserved = (row.reservedShare ?? 0) * 100;
  return (
    <svg className={`use-bar use-${nearnessOf(row.share)}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className="use-track" width={100} height={8} />
      <rect className="use-used" width={used} height={8} />
      <rect className="use-reserved" x={used} y={2} width={reserved} height={4} />
    </svg>
  );
}

/** Renders the bars of the limits of an account, and a table with all figures, also those that have no limit. */
export function UseBars({ rows }: { rows: LimitRow[] }) {
  const limited = rows.filter((row) => row.share !== null);
  return (
    <figure className="use-bars">
      {limited.length > 0 && (
        <ul>
          {limited.map((row) => (
            <li key={row.id}>
              <strong>{row.label}</strong>
              <UseBar row={row} />
              <span className="use-share">{formatShare(row.share ?? 0)}<Word share={row.share} /></span>
              <span className="use-numbers">
                {row.used} used, {row.reserved} reserved, {row.left ?? "–"} left of {row.allowed}
              </span>
            </li>
          ))}
        </ul>
      )}
      <UseTable rows={rows} />
      <p className="hint">Reserved is what calls in flight may still use.</p>
    </figure>
  );
}

function Word({ share }: { share: number | null }) {
  const nearness = nearnessOf(share);
  if (nearness === "free") return null;
  return <em className={`use-word use-word-${nearness}`}> {nearness === "over" ? "used up" : "nearly used up"}</em>;
}

const NUMBERS = [["allowed", "Allowed"], ["used", "Used"], ["reserved", "Reserved"], ["left", "Left"]] as const;

function UseTable({ rows }: { rows: LimitRow[] }) {
  return (
    <div className="use-table" tabIndex={0} role="region" aria-label="Limits in numbers">
      <table>
        <thead>
          <tr>
            <th scope="col">Limit</th>
            {NUMBERS.map(([name, label]) => (
              <th key={name} scope="col" className="num">{label}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">{row.label}</th>
              {NUMBERS.map(([name]) => (
                <td key={name} className="num">{row[name] ?? "no limit"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
