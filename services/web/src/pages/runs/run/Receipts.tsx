/** Receipts of a run: what each call cost, and corrections. */
import { type Schemas, api } from "../../../api/client";
import { usePages } from "../../../api/usePages";
import { formatCount, formatDollars } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { More } from "../../../components/More";
import { EmptyState } from "../../../components/Notes";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import type { RunDetails } from "./useRun";

type Receipt = Schemas["Receipt"];

const inline = (text: string) => <AgentText text={text} form="inline" />;

const COLUMNS: Column<Receipt>[] = [
  { id: "at", label: "Called", cell: (receipt) => <Time at={receipt.calledAt} /> },
  { id: "kind", label: "Kind", cell: ({ corrects, kind }) => (corrects === null ? inline(kind.replaceAll("_", " ")) : "correction") },
  {
    id: "model", label: "Model",
    cell: (receipt) => (receipt.model === null ? <span className="none">–</span> : <AgentText text={receipt.model} form="inline" />),
  },
  {
    id: "tokens", label: "Tokens in / out", isNumeric: true,
    cell: ({ tokens }) => `${formatCount(tokens.input)} / ${formatCount(tokens.output)}`,
  },
  { id: "exact", label: "Counted", cell: (receipt) => inline(receipt.tokensSource) },
  { id: "cost", label: "Cost", isNumeric: true, cell: (receipt) => formatDollars(receipt.cost) },
  { id: "credits", label: "Credits", isNumeric: true, cell: (receipt) => formatCount(receipt.credits) },
  { id: "reason", label: "Reason", cell: (receipt) => inline(receipt.reason.replaceAll("_", " ")) },
  { id: "attempt", label: "Attempt", isNumeric: true, cell: (receipt) => receipt.attempt + 1 },
  { id: "source", label: "By", cell: (receipt) => inline(receipt.source) },
];

/** Renders the receipts of `run`. */
export function Receipts({ run }: { run: RunDetails }) {
  const key = `${run.runId} ${run.attempt} ${run.receipts?.count ?? 0}`;
  const receipts = usePages<Receipt>(key, async (cursor, signal) => {
    const query = cursor === undefined ? { run: run.runId } : { run: run.runId, cursor };
    const page = await api.get("/api/v1/accounts/{account}/receipts", { path: { account: run.account }, query, signal });
    return { items: page.receipts, nextCursor: page.nextCursor };
  });
  const { items } = receipts;
  return (
    <>
      {items !== null && items.length === 0 && (
        <EmptyState title="No receipts">They come moments after the calls. Calls that were refused have none.</EmptyState>
      )}
      {items !== null && items.length > 0 && (
        <Table label="Receipts" columns={COLUMNS} rows={items} keyOf={(receipt) => `${receipt.source} ${receipt.reference}`} />
      )}
      <More pages={receipts} />
    </>
  );
}
