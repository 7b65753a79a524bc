/** Counts runs by state, as bars with a table behind them, and says how the queue stands. */
import { encodePart } from "../../../api/client";
import { Link } from "../../../base/router";
import { formatCount } from "../../../base/text/format";
import { StateChip } from "../../../components/StateChip";
import { type StateCount, type System, formatUptime, readCounts } from "./state";

/** Renders the counts. The numbers stand beside the bars, which is why the bars have no names. */
export function Runs({ system: { runs, queue } }: { system: System }) {
  return (
    <section className="panel stack" aria-labelledby="system-runs">
      <div className="bar-line">
        <h2 id="system-runs">Runs under way, of all accounts</h2>
        <span className="muted">
          {queue.waiting === 0 ? "none waits" : `${formatCount(queue.waiting)} wait`}
          {queue.oldestSeconds !== null && `, the oldest for ${formatUptime(queue.oldestSeconds)}`}
        </span>
      </div>
      {Object.keys(runs).length === 0 && <p className="muted">No run is under way.</p>}
      <table className="system-counts">
        <caption className="visually-hidden">Number of runs in each state</caption>
        <thead className="visually-hidden">
          <tr><th scope="col">State</th><th scope="col">Runs</th><th scope="col">Bar</th></tr>
        </thead>
        <tbody>{readCounts(runs).map((row) => <Row key={row.state} row={row} />)}</tbody>
      </table>
    </section>
  );
}

function Row({ row: { state, count, share } }: { row: StateCount }) {
  return (
    <tr>
      <th scope="row"><StateChip state={state} /></th>
      <td className="num"><Link to={`/sandbox?state=${encodePart(state)}`}>{formatCount(count)}</Link></td>
      <td className="system-bar">
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect width={share === 0 ? 0 : Math.max(0.5, share * 100)} height={8} />
        </svg>
      </td>
    </tr>
  );
}
