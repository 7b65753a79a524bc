/** List of runs: filters in the address, one request for a page, and live changes that move nothing. */
import { useMemo } from "react";
import { encodePart } from "../../../api/client";
import { Link, useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { EmptyState, ErrorNote, Skeleton } from "../../../components/Notes";
import { Pager } from "../../../components/Pager";
import { StreamNote } from "../../../components/StreamNote";
import { Table } from "../../../components/Table";
import { runColumns } from "./columns";
import { type RunFilter, isFiltered, readFilter } from "./filter";
import { Filters } from "./Filters";
import { useRuns } from "./useRuns";
import "./runs.css";

/** Shows the runs that the filters of the address choose. */
export default function Runs() {
  const { query, navigate } = useLocation();
  const { may } = useSession();
  const text = query.toString();
  const filter = useMemo(() => readFilter(new URLSearchParams(text)), [text]);
  const { loaded, list, nextCursor, stream, showNew } = useRuns(filter);
  const seesAccounts = may("operator");
  const columns = useMemo(() => runColumns(list?.runs ?? [], seesAccounts), [list, seesAccounts]);
  const agents = useMemo(() => [...new Set(list?.runs.map((run) => run.agentId))].sort(), [list]);
  const waiting = list?.waiting.size ?? 0;
  const page = (cursor: string | null) => {
    const next = new URLSearchParams(query);
    if (cursor === null) next.delete("cursor");
    else next.set("cursor", cursor);
    return `/sandbox?${next.toString()}`;
  };
  return (
    <>
      <div className="page-head">
        <h1>Runs</h1>
        <StreamNote state={stream.state} onRetry={stream.retryNow} />
        {waiting > 0 && (
          <button type="button" className="new-rows" onClick={showNew}>
            ↑ {waiting} new
          </button>
        )}
      </div>
      <Filters filter={filter} agents={agents} />
      {loaded.error !== null && <ErrorNote error={loaded.error} onRetry={loaded.reload} staleSince={list && loaded.staleSince} />}
      {list === null && loaded.error === null && <Skeleton rows={12} />}
      {list !== null && list.runs.length === 0 && <NoRuns filter={filter} onClear={() => navigate("/sandbox")} />}
      {list !== null && list.runs.length > 0 && (
        <Table
          label="Runs" columns={columns} rows={list.runs} keyOf={(run) => run.runId}
          onOpen={(run) => navigate(`/sandbox/${encodePart(run.runId)}`)}
        />
      )}
      <Pager newest={filter.cursor === "" ? null : page(null)} older={nextCursor === null ? null : page(nextCursor)} />
    </>
  );
}

function NoRuns({ filter, onClear }: { filter: RunFilter; onClear: () => void }) {
  if (isFiltered(filter)) {
    return <EmptyState title="No run matches the filters" onClear={onClear}>There may be others without them.</EmptyState>;
  }
  return (
    <EmptyState title="There are no runs yet">
      Order the first one with <code>sluice run "Why is the sky blue?"</code>, or in the <Link to="/chat">chat</Link>. Runs of other
      accounts are shown to operators only.
    </EmptyState>
  );
}
