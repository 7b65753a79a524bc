/** Overview: what was spent, how runs ended, what was refused, and what waits, in a span of time. The first page. */
import { api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { useLocation } from "../../../base/router";
import { formatCount, formatDuration, plural } from "../../../base/text/format";
import { Columns } from "../../../components/charts/Columns";
import { RankBars } from "../../../components/charts/RankBars";
import { LoadNote } from "../../../components/LoadNote";
import {
  OUTCOMES, type Overview as Figures, RANGES, SPENDING, TOKENS, USAGE, accountRows, codeRows, countRuns, formatAmount, formatCompact,
  formatCost, modelRows, outcomeRows, readRange, spendingRows, sumOf, tokenRows, waitRows,
} from "./figures";
import { Tiles } from "./Tiles";
import "../../../components/charts/charts.css";
import "./overview.css";

const POLL_SECONDS = 30;

/** Shows the figures of the caller's accounts. */
export default function Overview() {
  const { query, setQuery } = useLocation();
  const range = readRange(query.get("range"));
  const loaded = useLoad(`overview ${range}`, (signal) => api.get("/api/v1/ai/overview", { query: { range }, signal }));
  usePoll(loaded, POLL_SECONDS);
  return (
    <>
      <div className="page-head">
        <h1>Overview</h1>
        <div className="toggles" role="group" aria-label="Span of time">
          {RANGES.map(([id, name]) => (
            <button
              key={id} type="button" className="toggle" aria-pressed={id === range}
              onClick={() => setQuery({ range: id === "24h" ? null : id })}
            >
              {name}
            </button>
          ))}
        </div>
      </div>
      <LoadNote loaded={loaded} rows={10} />
      {loaded.data !== null && (
        <>
          <Tiles overview={loaded.data} />
          <Charts overview={loaded.data} />
        </>
      )}
    </>
  );
}

function Charts({ overview }: { overview: Figures }) {
  const { total, failures, refusals, waits } = overview;
  const accounts = accountRows(overview);
  const tokens = total.inputTokens + total.outputTokens;
  const failed = codeRows(failures);
  const refused = codeRows(refusals);
  const waited = waitRows(overview);
  return (
    <div className="chart-grid">
      <Columns title="Spending" summary={formatCost(total)} rows={spendingRows(overview)} series={SPENDING} format={formatAmount} />
      <Columns title="Tokens" summary={formatCount(tokens)} rows={tokenRows(overview)} series={TOKENS} format={formatCompact} />
      <Columns
        title="Runs by outcome" summary={`${formatCount(countRuns(overview).ended)} ended`} rows={outcomeRows(overview)} series={OUTCOMES}
        format={formatCount}
      />
      <RankBars
        title="Waiting times" summary={waits.longestMs === 0 ? "no run waited" : `the longest ${formatDuration(waits.longestMs)}`}
        rows={waited} series={[{ name: "Runs", tone: "one" }]} format={formatCount}
      />
      <RankBars
        title="Models" summary={plural(overview.byModel.length, "model")} rows={modelRows(overview)} series={USAGE} format={formatAmount}
      />
      {accounts.length > 1 && (
        <RankBars title="Accounts" summary={plural(accounts.length, "account")} rows={accounts} series={USAGE} format={formatAmount} />
      )}
      <RankBars
        title="Failures" summary={plural(sumOf(failed), "run")} rows={failed} series={[{ name: "Runs", tone: "bad" }]} format={formatCount}
      />
      <RankBars
        title="Refusals" summary={plural(sumOf(refused), "call")} rows={refused} series={[{ name: "Calls", tone: "warn" }]}
        format={formatCount}
      />
    </div>
  );
}
