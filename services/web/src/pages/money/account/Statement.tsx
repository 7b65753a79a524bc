/** Statement of an account for a month: what it was given, and what its calls cost. */
import { type Schemas, api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { formatCount, formatDollars } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import { nameMonth } from "./month";

/** Renders the statement. */
export default function Statement({ account, month }: { account: string; month: string }) {
  const loaded = useLoad(`statement ${account} ${month}`, (signal) =>
    api.get("/api/v1/accounts/{account}/statement", { path: { account }, query: { month }, signal }),
  );
  const { data } = loaded;
  if (data === null) return <LoadNote loaded={loaded} />;
  return (
    <>
      <LoadNote loaded={loaded} />
      <dl className="facts panel">
        <Fact name="Before the month">{formatCount(data.opening)} credits</Fact>
        <Fact name="Given">{formatCount(data.paidIn)} credits</Fact>
        <Fact name="Charged">{formatCount(data.charged)} credits</Fact>
        <Fact name="After the month">{formatCount(data.closing)} credits</Fact>
      </dl>
      {data.lines.length + data.topUps.length === 0 && (
        <EmptyState title={`Nothing was given or used in ${nameMonth(month)}`}>
          A receipt belongs to the month in which it was stored, in UTC.
        </EmptyState>
      )}
      {data.lines.length > 0 && (
        <Table label="Receipts by model" columns={LINES} rows={data.lines} keyOf={(line) => `${line.kind} ${line.model ?? ""}`} />
      )}
      {data.topUps.length > 0 && <Table label="Top-ups" columns={TOP_UPS} rows={data.topUps} keyOf={(topUp) => topUp.key} />}
    </>
  );
}

const text = (value: string | null) => (value === null ? <span className="none">–</span> : <AgentText text={value} form="inline" />);

const LINES: Column<Schemas["StatementLine"]>[] = [
  { id: "model", label: "Model", isWide: "labelled", cell: (line) => text(line.model) },
  { id: "kind", label: "Kind", cell: (line) => (line.kind === "adjustment" ? "correction" : "calls") },
  { id: "receipts", label: "Receipts", isNumeric: true, cell: (line) => formatCount(line.receipts) },
  { id: "input", label: "Input tokens", isNumeric: true, cell: (line) => formatCount(line.tokens.input) },
  { id: "output", label: "Output tokens", isNumeric: true, cell: (line) => formatCount(line.tokens.output) },
  { id: "cost", label: "Cost", isNumeric: true, cell: (line) => formatDollars(line.cost) },
  { id: "credits", label: "Credits", isNumeric: true, cell: (line) => formatCount(line.credits) },
];

const TOP_UPS: Column<Schemas["TopUp"]>[] = [
  { id: "at", label: "Top-up of", cell: (topUp) => <Time at={topUp.createdAt} /> },
  { id: "credits", label: "Credits", isNumeric: true, cell: (topUp) => formatCount(topUp.credits) },
  { id: "author", label: "By", cell: (topUp) => text(topUp.author) },
  { id: "note", label: "Note", cell: (topUp) => text(topUp.note) },
  { id: "key", label: "Idempotency key", isWide: "labelled", cell: (topUp) => text(topUp.key) },
];
