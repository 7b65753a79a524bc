/** One agent of a gateway: what it may do, how it behaves, why a tool is there or not, what it has said, and its files. */
import { Suspense, lazy, useState } from "react";
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link, useLocation } from "../../../base/router";
import { AgentText } from "../../../components/AgentText";
import { Avatar } from "../../../components/Avatar";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { Tabs } from "../../../components/Tabs";
import { AgentState } from "./AgentTable";
import type { Drafts } from "./Behaviour";
import { Capabilities } from "./Capabilities";
import { ChatLink } from "./ChatLink";
import { type GatewayAgent, fixedReason, newest, pagePath, pollSeconds } from "./agents";
import { useGateway } from "./useGateway";
import { useSettings } from "./useSettings";
import "./studio.css";

const Behaviour = lazy(() => import("./Behaviour"));
const ToolAccess = lazy(() => import("./ToolAccess"));
const Sessions = lazy(() => import("./Sessions"));
const Workspace = lazy(() => import("./Workspace"));
const Remove = lazy(() => import("./Remove"));

/** Shows the agent of the address. */
export default function AgentPage() {
  const { params } = useLocation();
  const path = { gateway: params["gateway"] ?? "", agent: params["agent"] ?? "" };
  const loaded = useLoad(`agent ${path.gateway} ${path.agent}`, (signal) =>
    api.get("/api/v1/gateways/{gateway}/agents/{agent}", { path, signal }),
  );
  const [answered, setAnswered] = useState<GatewayAgent | null>(null);
  const agent = newest(loaded.data, answered);
  usePoll(loaded, pollSeconds(agent === null ? [] : [agent], useDashboard().pollSeconds.gateways));
  const changed = (answer: GatewayAgent | null) => {
    if (answer !== null) setAnswered(answer);
    loaded.reload();
  };
  if (loaded.error?.status === 404) {
    return (
      <EmptyState title={agent === null ? "There is no such agent" : "The agent was removed"}>
        <Link to={pagePath(path.gateway)}>Show the agents of the gateway</Link>
      </EmptyState>
    );
  }
  return (
    <>
      <LoadNote loaded={loaded} />
      {agent !== null && <Shown agent={agent} onChanged={changed} />}
    </>
  );
}

function Shown({ agent, onChanged }: { agent: GatewayAgent; onChanged: (agent: GatewayAgent | null) => void }) {
  const { query, setQuery } = useLocation();
  const { gateway, isPending, mayChange } = useGateway(agent.gateway);
  const settings = useSettings(agent, onChanged);
  const [drafts, setDrafts] = useState<Drafts>({});
  const tabs = [
    { id: "capabilities", label: "Capabilities", render: () => <Capabilities settings={settings} mayChange={mayChange} /> },
    {
      id: "behaviour", label: "Behaviour",
      render: () => <Behaviour {...{ agent, mayChange, drafts }} onDrafts={setDrafts} onSaved={onChanged} />,
    },
    { id: "tools", label: "Tools", render: () => <ToolAccess agent={agent} /> },
    { id: "sessions", label: "Sessions", render: () => <Sessions agent={agent} /> },
    { id: "files", label: "Files", render: () => <Workspace {...{ agent, gateway, isPending }} /> },
  ];
  return (
    <>
      <Head agent={agent} mayChange={mayChange} onRemoved={() => onChanged(null)} />
      <div className="bar-line" role="status"><AgentState agent={agent} /></div>
      <Tabs
        label="Parts of the agent" tabs={tabs} shown={query.get("tab") ?? "capabilities"}
        onShow={(id) => setQuery({ tab: id === "capabilities" ? null : id, file: null, dir: null, session: null, cursor: null })}
      />
    </>
  );
}

function Head({ agent, mayChange, onRemoved }: { agent: GatewayAgent; mayChange: boolean; onRemoved: () => void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <div className="page-head">
      <Avatar seed={agent.avatar ?? agent.name} />
      <h1><AgentText text={agent.name} form="inline" /></h1>
      <code className="muted"><AgentText text={agent.id} form="inline" /></code>
      <span>of <Link to={pagePath(agent.gateway)}><AgentText text={agent.gateway} form="inline" /></Link></span>
      <div className="bar-line">
        <ChatLink agent={agent} />
        {fixedReason(agent, mayChange) === null && (
          <button type="button" className="danger" onClick={() => setAsked(true)}>Remove …</button>
        )}
      </div>
      <Suspense>{isAsked && <Remove agent={agent} onDone={onRemoved} onClose={() => setAsked(false)} />}</Suspense>
    </div>
  );
}
