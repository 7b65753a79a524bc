/** Receipts of an account, the newest first, a page at a time. The place in the list is in the address. */
import { type Schemas, api } from "../../api/client";
import { useLoad } from "../../api/useLoad";
import { useLocation } from "../../app/router";
import { AgentText } from "../../components/agent-text/AgentText";
import { EmptyState } from "../../components/EmptyState";
import { type Column, Table } from "../../components/Table";
import { Time } from "../../components/Time";
import { formatCount, formatDollars } from "../../components/format";
import { LoadNote } from "../../components/LoadNote";
import { RunLink } from "../../components/ObjectLink";

const PAGE = 50;

/** Renders a page of the receipts of `month`, or of one run if the address names it. */
export default function Receipts({ account, month }: { account: string; month: string }) {
  const { path, query, navigate, setQuery } = useLocation();
  const cursor = query.get("cursor") ?? "";
  const run = query.get("run") ?? "";
  const filter = run === "" ? { month } : { run };
  const loaded = useLoad(`receipts ${account} ${month} ${run} ${cursor}`, (signal) =>
    api.get("/api/v1/accounts/{account}/receipts", { path: { account }, query: { ...filter, cursor, limit: PAGE }, signal }),
  );
  const { data } = loaded;
  const goTo = (next: string | null) => {
    const changed = new URLSearchParams(query);
    if (next === null) changed.delete("cursor");
    else changed.set("cursor", next);
    navigate(`${path}?${changed.toString()}`);
  };
  const clear = () => setQuery({ run: null, cursor: null });
  if (data === null) return <LoadNote loaded={loaded} rows={8} />;
  return (
    <>
      <LoadNote loaded={loaded} />
      {run !== "" && (
        <p className="bar-line">
          Of the run <AgentText text={run} form="inline" />
          <button type="button" className="quiet" onClick={clear}>Show those of the month</button>
        </p>
      )}
      {data.receipts.length === 0 ? (
        <EmptyState title="No receipts" onClear={run === "" ? undefined : clear}>
          A receipt is stored moments after its call. Another month may have some.
        </EmptyState>
      ) : (
        <Table label="Receipts" columns={COLUMNS} rows={data.receipts} keyOf={(receipt) => `${receipt.source} ${receipt.reference}`} />
      )}
      <div className="bar-line" role="group" aria-label="Pages of receipts">
        {cursor !== "" && <button type="button" onClick={() => goTo(null)}>Newest</button>}
        {data.nextCursor !== null && <button type="button" onClick={() => goTo(data.nextCursor)}>Older receipts</button>}
      </div>
    </>
  );
}

const name = (value: string | null) => (value === null ? <span className="none">–</span> : <AgentText text={value} form="inline" />);

const COLUMNS: Column<Schemas["Receipt"]>[] = [
  { id: "called", label: "Called", cell: (receipt) => <Time at={receipt.calledAt} /> },
  { id: "run", label: "Run", isWide: true, cell: (receipt) => <RunLink id={receipt.runId} /> },
  { id: "model", label: "Model", cell: (receipt) => name(receipt.model) },
  { id: "input", label: "Input", isNumeric: true, cell: (receipt) => formatCount(receipt.tokens.input) },
  { id: "output", label: "Output", isNumeric: true, cell: (receipt) => formatCount(receipt.tokens.output) },
  { id: "cost", label: "Cost", isNumeric: true, cell: (receipt) => formatDollars(receipt.cost) },
  { id: "credits", label: "Credits", isNumeric: true, cell: (receipt) => formatCount(receipt.credits) },
  { id: "kind", label: "Kind", isWide: true, cell: (receipt) => <Kind receipt={receipt} /> },
];

function Kind({ receipt }: { receipt: Schemas["Receipt"] }) {
  const tokens = receipt.tokensSource === "exact" ? "" : `, tokens ${receipt.tokensSource}`;
  return (
    <>
      {receipt.corrects === null ? "call" : <>corrects <AgentText text={receipt.corrects} form="inline" /></>}
      {tokens} <span className="muted">(<AgentText text={receipt.reason} form="inline" />)</span>
    </>
  );
}
