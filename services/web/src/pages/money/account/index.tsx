/** One account: its limits with what is used, its balance, its statements and its receipts. */
import { Suspense, lazy, useState } from "react";
import { api, encodePart } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link, useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { AgentText } from "../../../components/AgentText";
import { LoadNote } from "../../../components/LoadNote";
import { StateChip } from "../../../components/StateChip";
import { FreezeChips, freezesOf } from "../freezes";
import type { ChangedPart } from "./Actions";
import { Balance } from "./Balance";
import { Parts } from "./Parts";
import "../accounts.css";

const Actions = lazy(() => import("./Actions"));

/** Shows the account of the address. */
export default function Account() {
  const { params } = useLocation();
  const { may, state } = useSession();
  const id = params["account"] ?? "";
  const path = { account: id };
  const account = useLoad(`account ${id}`, (signal) => api.get("/api/v1/accounts/{account}", { path, signal }));
  const balance = useLoad(`balance ${id}`, (signal) => api.get("/api/v1/accounts/{account}/balance", { path, signal }));
  const freezes = useLoad(may("operator") ? "freezes" : null, (signal) => api.get("/api/v1/freezes", { signal }));
  const seconds = useDashboard().pollSeconds.gateways;
  usePoll(account, seconds);
  usePoll(balance, seconds);
  usePoll(freezes, seconds);
  const [topUps, setTopUps] = useState(0);
  const frozenBy = freezesOf(freezes.data?.freezes ?? [], id);
  const isMissing = account.error?.status === 404;
  const isOwn = state.kind === "signedIn" && state.session.account === id;
  // An operator may set up an account before its first run, and its own members may see it.
  const isNew = isMissing && (may("operator") || isOwn) && balance.error === null;
  const limits = account.data?.limits ?? null;
  const changed = (part: ChangedPart) => {
    ({ limits: account, credits: balance, freezes })[part].reload();
    if (part === "credits") setTopUps(topUps + 1);
  };
  return (
    <>
      <div className="page-head">
        <h1>Account <AgentText text={id} form="inline" /></h1>
        <FreezeChips freezes={frozenBy} />
        {balance.data?.exhausted === true && <StateChip state="balance exhausted" tone="bad" />}
        <Link to={`/sandbox?account=${encodePart(id)}`}>Runs of this account</Link>
      </div>
      {isNew ? (
        <p className="note">The data plane does not know this account: it has had no run, and no entry in the configuration.</p>
      ) : (
        <LoadNote loaded={account}>{isMissing && <Link to="/accounts">Show all accounts</Link>}</LoadNote>
      )}
      {(isNew || !isMissing) && (
        <>
          {may("operator") ? (
            <Suspense fallback={<div className="actions-wait" />}>
              <Actions
                id={id} limits={limits} canLimit={isNew || limits !== null} onChanged={changed}
                isFrozen={frozenBy.some(({ kind }) => kind === "account")}
              />
            </Suspense>
          ) : (
            <p className="hint">Limits, credits and freezes take the role operator.</p>
          )}
          <Balance balance={balance} inexact={account.data?.inexactCalls ?? null} />
          <Parts id={id} limits={limits} topUps={topUps} />
        </>
      )}
    </>
  );
}
