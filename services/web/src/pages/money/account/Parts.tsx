/** Tabs of an account: limits, statement and receipts. */
import { type ReactNode, Suspense, lazy } from "react";
import type { Schemas } from "../../../api/client";
import { useLocation } from "../../../base/router";
import { Skeleton } from "../../../components/Notes";
import { Tabs } from "../../../components/Tabs";
import { readLimits } from "../limits";
import { UseBars } from "../UseBar";
import { MonthChoice, isMonth, monthOf } from "./month";

const Receipts = lazy(() => import("./Receipts"));
const Statement = lazy(() => import("./Statement"));

/** Properties: `topUps` counts those that were made here, after which a statement is read again. */
export interface PartsProps {
  id: string;
  limits: Schemas["AccountLimits"] | null;
  topUps: number;
}

/** Renders the tabs. The shown one and the month are in the address. */
export function Parts({ id, limits, topUps }: PartsProps) {
  const { query, setQuery } = useLocation();
  const asked = query.get("month") ?? "";
  const month = isMonth(asked) ? asked : monthOf(new Date());
  // Another month, or another run, begins with no rows.
  const receiptsKey = `${id} ${month} ${query.get("run") ?? ""}`;
  const dated = (content: ReactNode) => (
    <>
      <MonthChoice month={month} onChoose={(chosen) => setQuery({ month: chosen, run: null })} />
      <Suspense fallback={<Skeleton rows={6} />}>{content}</Suspense>
    </>
  );
  const bars = () => limits !== null && <div className="panel"><UseBars rows={readLimits(limits)} /></div>;
  return (
    <Tabs
      label="Parts of the account" shown={query.get("tab") ?? "limits"} onShow={(tab) => setQuery({ tab })}
      tabs={[
        { id: "limits", label: "Limits", render: bars },
        { id: "statement", label: "Statement", render: () => dated(<Statement key={topUps} account={id} month={month} />) },
        { id: "receipts", label: "Receipts", render: () => dated(<Receipts key={receiptsKey} account={id} month={month} />) },
      ]}
    />
  );
}
