/** Sessions of an agent, the last changed first: what was asked, what it cost, and where its transcript is. */
import { useMemo } from "react";
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link, useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { formatCount, formatDollars } from "../../../base/text/format";
import { AgentText, cutAt } from "../../../components/AgentText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { Pager } from "../../../components/Pager";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import { ChatLink } from "./ChatLink";
import type { GatewayAgent } from "./agents";
import { type GatewaySession, type SessionLink, sessionKey, sessionLink, sessionSeconds, sessionsLink } from "./sessions";
import { dirLink } from "./workspace";

const PAGE = 50;
const LISTED_CHARS = 120;

/** Loads and renders the page of the address. */
export default function Sessions({ agent }: { agent: GatewayAgent }) {
  const { query, navigate } = useLocation();
  const { state } = useSession();
  const ownAccount = state.kind === "signedIn" ? state.session.account : null;
  const cursor = query.get("cursor");
  const path = { gateway: agent.gateway, agent: agent.id };
  const page = cursor === null ? { limit: PAGE } : { limit: PAGE, cursor };
  const loaded = useLoad(`sessions ${path.gateway} ${path.agent} ${cursor ?? ""}`, (signal) =>
    api.get("/api/v1/gateways/{gateway}/agents/{agent}/sessions", { path, query: page, signal }),
  );
  const sessions = loaded.data?.sessions ?? [];
  usePoll(loaded, sessionSeconds(sessions, useDashboard().pollSeconds.gateways));
  const columns = useMemo(() => sessionColumns(ownAccount), [ownAccount]);
  const next = loaded.data?.nextCursor ?? null;
  return (
    <>
      <LoadNote loaded={loaded} />
      {loaded.data !== null && sessions.length === 0 && <NoSessions agent={agent} isFirst={cursor === null} />}
      {sessions.length > 0 && (
        <Table
          label="Sessions" columns={columns} rows={sessions} keyOf={sessionKey}
          onOpen={(session) => navigate(sessionLink(session, ownAccount).to)}
        />
      )}
      <Pager newest={cursor === null ? null : sessionsLink(null)} older={next === null ? null : sessionsLink(next)} />
    </>
  );
}

function NoSessions({ agent, isFirst }: { agent: GatewayAgent; isFirst: boolean }) {
  if (!isFirst) return <EmptyState title="No older sessions">Those of removed runs are not listed.</EmptyState>;
  return (
    <EmptyState title="The agent has no sessions yet">
      A session begins when a run of the agent begins: with the first question of a chat, or with an order. <ChatLink agent={agent} />
    </EmptyState>
  );
}

function sessionColumns(ownAccount: string | null): Column<GatewaySession>[] {
  return [
    {
      id: "session", label: "Session", isWide: true,
      cell: (session) => <Named link={sessionLink(session, ownAccount)} session={session.session} />,
    },
    { id: "state", label: "State", isWide: true, cell: ({ state }) => <StateChip state={state} /> },
    { id: "runs", label: "Runs", isNumeric: true, cell: ({ runs }) => formatCount(runs) },
    { id: "cost", label: "Cost", isNumeric: true, cell: ({ cost }) => formatDollars(cost) },
    { id: "changed", label: "Last run", cell: ({ changedAt }) => <Time at={changedAt} /> },
  ];
}

function Named({ link: { to, text, target }, session }: { link: SessionLink; session: string }) {
  const shown = cutAt(text, LISTED_CHARS);
  return (
    <div className="studio-session">
      <Link to={to}><AgentText text={shown.length < text.length ? `${shown}…` : text} form="inline" /></Link>
      <small><AgentText text={target} form="inline" /> · <Link to={dirLink("", session)}>Files</Link></small>
    </div>
  );
}
