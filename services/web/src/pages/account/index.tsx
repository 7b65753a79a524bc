/** One account: its limits with what is used, its balance, its statements and its receipts. */
import { type ReactNode, Suspense, lazy, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { useDashboard } from "../../api/dashboard";
import { type Loaded, useLoad } from "../../api/useLoad";
import { usePoll } from "../../api/usePoll";
import { Link, useLocation } from "../../app/router";
import { useSession } from "../../app/session";
import { AgentText } from "../../components/agent-text/AgentText";
import { Skeleton } from "../../components/Skeleton";
import { StateChip } from "../../components/StateChip";
import { Tabs } from "../../components/Tabs";
import { formatCount } from "../../components/format";
import { UseBars } from "../accounts/UseBar";
import { freezeOf } from "../accounts/freezes";
import { readLimits } from "../accounts/limits";
import { Actions } from "./Actions";
import { MonthChoice } from "./MonthChoice";
import { isMonth, monthOf } from "./month";
import { Fact } from "../../components/Fact";
import { LoadNote } from "../../components/LoadNote";
import "../accounts/accounts.css";

const Receipts = lazy(() => import("./Receipts"));
const Statement = lazy(() => import("./Statement"));

/** Shows the account of the address. */
export default function Account() {
  const { params, query, setQuery } = useLocation();
  const { may } = useSession();
  const id = params["account"] ?? "";
  const account = useLoad(`account ${id}`, (signal) => api.get("/api/v1/accounts/{account}", { path: { account: id }, signal }));
  const balance = useLoad(`balance ${id}`, (signal) => api.get("/api/v1/accounts/{account}/balance", { path: { account: id }, signal }));
  const freezes = useLoad(may("operator") ? "freezes" : null, (signal) => api.get("/api/v1/freezes", { signal }));
  const seconds = useDashboard().pollSeconds.gateways;
  usePoll(account, seconds);
  usePoll(balance, seconds);
  usePoll(freezes, seconds);
  const [round, setRound] = useState(0);
  const freeze = freezeOf(freezes.data?.freezes ?? [], id);
  const asked = query.get("month") ?? "";
  const month = isMonth(asked) ? asked : monthOf(new Date());
  const changed = (part: "limits" | "credits" | "freezes") => {
    ({ limits: account, credits: balance, freezes })[part].reload();
    if (part === "credits") setRound(round + 1);
  };
  const dated = (content: ReactNode) => (
    <>
      <MonthChoice month={month} onChoose={(chosen) => setQuery({ month: chosen, run: null })} />
      <Suspense fallback={<Skeleton rows={6} />}>{content}</Suspense>
    </>
  );
  const limits = () => {
    if (account.data === null) return null;
    return <div className="panel"><UseBars rows={readLimits(account.data.limits)} /></div>;
  };
  return (
    <>
      <div className="page-head">
        <h1>Account <AgentText text={id} form="inline" /></h1>
        {freeze !== null && <StateChip state={freeze.kind === "all" ? "all frozen" : "frozen"} tone="warn" />}
        {balance.data?.exhausted === true && <StateChip state="balance exhausted" tone="bad" />}
        <Link to={`/sandbox?account=${encodeURIComponent(id)}`}>Runs of this account</Link>
      </div>
      <LoadNote loaded={account}>{account.error?.status === 404 && <Link to="/accounts">Show all accounts</Link>}</LoadNote>
      {account.error?.status !== 404 && (
        <>
          <Actions id={id} account={account.data} freeze={freeze} onChanged={changed} />
          <Balance balance={balance} inexact={account.data?.inexactCalls ?? null} />
          <Tabs
            label="Parts of the account" shown={query.get("tab") ?? "limits"} onShow={(tab) => setQuery({ tab })}
            tabs={[
              { id: "limits", label: "Limits", render: limits },
              { id: "statement", label: "Statement", render: () => dated(<Statement key={round} account={id} month={month} />) },
              { id: "receipts", label: "Receipts", render: () => dated(<Receipts key={id} account={id} month={month} />) },
            ]}
          />
        </>
      )}
    </>
  );
}

interface BalanceProps {
  balance: Loaded<Schemas["Balance"]>;
  inexact: Schemas["InexactCalls"] | null;
}

function Balance({ balance, inexact }: BalanceProps) {
  const { data } = balance;
  return (
    <>
      {balance.error !== null && <LoadNote loaded={balance} />}
      {data !== null && (
        <dl className="facts panel">
          <Fact name="Balance">{formatCount(data.credits)} credits</Fact>
          <Fact name="Floor">{data.floor === null ? "none: no call is refused" : `${formatCount(data.floor)} credits`}</Fact>
          {inexact !== null && (
            <Fact name="Inexact calls">
              {formatCount(inexact.unpriced)} unpriced, {formatCount(inexact.estimated)} estimated
            </Fact>
          )}
        </dl>
      )}
      {data?.exhausted === true && (
        <p className="note">Calls and new runs of this account are refused, unless they ask a free model. Credits lift that.</p>
      )}
    </>
  );
}
