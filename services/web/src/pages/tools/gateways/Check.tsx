/** Checks one gateway on request, and shows what was found. */
import { useState } from "react";
import { buildPath, sendJson } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { announce } from "../../../base/announce";
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";
import { FixText } from "../../../components/FixText";
import { LoadNote } from "../../../components/LoadNote";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import { type GatewayCheck, type ReadFinding, readFindings, readState } from "./findings";

type Checked = GatewayCheck & { at: string };

/** Renders the button and the result. */
export function Check({ gateway }: { gateway: string }) {
  const [isAsked, setAsked] = useState(false);
  const check = useLoad(isAsked ? `check ${gateway}` : null, async (signal): Promise<Checked> => {
    const path = buildPath("/api/v1/gateways/{gateway}/check", { gateway });
    const result = await sendJson<GatewayCheck>("get", path, { signal });
    announce(`${gateway}: ${readState(result).text}`);
    return { ...result, at: new Date().toISOString() };
  });
  const isRunning = isAsked && check.isLoading;
  const ask = () => (isAsked ? check.reload() : setAsked(true));
  return (
    <div className="stack">
      <div className="bar-line">
        <button type="button" onClick={ask} disabled={isRunning} aria-label={`Check ${visibleText(gateway)}`}>
          {isRunning ? "Checking …" : "Check"}
        </button>
        {isRunning && <span className="muted">takes up to 20 s</span>}
        {check.data !== null && !isRunning && <State check={check.data} />}
      </div>
      {isAsked && check.error !== null && <LoadNote loaded={check} />}
      {check.data !== null && check.data.findings.length > 0 && (
        <Table
          label={`Findings of ${visibleText(gateway)}`} columns={COLUMNS} rows={readFindings(check.data.findings)}
          keyOf={(row) => `${row.code} ${row.found}`}
        />
      )}
    </div>
  );
}

function State({ check }: { check: Checked }) {
  const { text, tone } = readState(check);
  return (
    <>
      <StateChip state={text} tone={tone} />
      <span className="muted">checked at <Time at={check.at} /></span>
    </>
  );
}

function Found({ row }: { row: ReadFinding }) {
  return (
    <>
      <FixText text={row.found} /> <code className="muted"><AgentText text={row.code} form="inline" /></code>
    </>
  );
}

function Fix({ text }: { text: string | null }) {
  return text === null ? <span className="none">–</span> : <FixText text={text} />;
}

const COLUMNS: Column<ReadFinding>[] = [
  { id: "level", label: "Level", cell: (row) => <StateChip state={row.level} tone={row.tone} /> },
  { id: "found", label: "Found", isWide: "labelled", cell: (row) => <Found row={row} /> },
  { id: "fix", label: "What to do", isWide: "labelled", cell: (row) => <Fix text={row.fix} /> },
];
