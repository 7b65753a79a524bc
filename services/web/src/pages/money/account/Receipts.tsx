/** Receipts of an account, the newest first, page by page. */
import { type Schemas, api } from "../../../api/client";
import { usePages } from "../../../api/usePages";
import { useLocation } from "../../../base/router";
import { formatCount, formatDollars } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { More } from "../../../components/More";
import { EmptyState } from "../../../components/Notes";
import { RunLink } from "../../../components/ObjectLink";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";

const PAGE = 50;

/** Renders the receipts of `month`, or of one run if the address names it. */
export default function Receipts({ account, month }: { account: string; month: string }) {
  const { query, setQuery } = useLocation();
  const run = query.get("run") ?? "";
  const filter = run === "" ? { month } : { run };
  const pages = usePages(`receipts ${account} ${month} ${run}`, async (cursor, signal) => {
    const page = { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const { receipts, nextCursor } = await api.get("/api/v1/accounts/{account}/receipts", { path: { account }, query: page, signal });
    return { items: receipts, nextCursor };
  });
  const clear = () => setQuery({ run: null });
  return (
    <>
      {run !== "" && (
        <p className="bar-line">
          Of the run <AgentText text={run} form="inline" />
          <button type="button" className="quiet" onClick={clear}>Show those of the month</button>
        </p>
      )}
      {pages.items?.length === 0 && (
        <EmptyState title="No receipts" onClear={run === "" ? undefined : clear}>
          A receipt is stored moments after its call. Another month may have some.
        </EmptyState>
      )}
      {pages.items !== null && pages.items.length > 0 && (
        <Table label="Receipts" columns={COLUMNS} rows={pages.items} keyOf={(receipt) => `${receipt.source} ${receipt.reference}`} />
      )}
      <More pages={pages} />
    </>
  );
}

const name = (value: string | null) => (value === null ? <span className="none">–</span> : <AgentText text={value} form="inline" />);

const COLUMNS: Column<Schemas["Receipt"]>[] = [
  { id: "called", label: "Called", cell: (receipt) => <Time at={receipt.calledAt} /> },
  { id: "run", label: "Run", isWide: "labelled", cell: (receipt) => <RunLink id={receipt.runId} /> },
  { id: "model", label: "Model", cell: (receipt) => name(receipt.model) },
  { id: "input", label: "Input", isNumeric: true, cell: (receipt) => formatCount(receipt.tokens.input) },
  { id: "output", label: "Output", isNumeric: true, cell: (receipt) => formatCount(receipt.tokens.output) },
  { id: "cost", label: "Cost", isNumeric: true, cell: (receipt) => formatDollars(receipt.cost) },
  { id: "credits", label: "Credits", isNumeric: true, cell: (receipt) => formatCount(receipt.credits) },
  { id: "kind", label: "Kind", isWide: "labelled", cell: (receipt) => <Kind receipt={receipt} /> },
];

function Kind({ receipt }: { receipt: Schemas["Receipt"] }) {
  return (
    <>
      {receipt.corrects === null ? "call" : <>corrects <AgentText text={receipt.corrects} form="inline" /></>}
      {receipt.tokensSource !== "exact" && <>, tokens <AgentText text={receipt.tokensSource} form="inline" /></>}{" "}
      <span className="muted">(<AgentText text={receipt.reason} form="inline" />)</span>
    </>
  );
}
