/** One gateway: its agents, and how far each change of theirs is. */
import { Suspense, lazy, useState } from "react";
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { type Loaded, useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link, useLocation } from "../../../base/router";
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { StateChip } from "../../../components/StateChip";
import { gatewayTone } from "../gateways/tone";
import { AgentTable } from "./AgentTable";
import { pagePath, pollSeconds } from "./agents";
import { useGateway } from "./useGateway";
import "./studio.css";

const NewAgent = lazy(() => import("./NewAgent"));

/** Shows the gateway of the address. */
export default function Gateway() {
  const { params, navigate } = useLocation();
  const id = params["gateway"] ?? "";
  const { gateway, mayChange } = useGateway(id);
  const loaded = useLoad(`agents of ${id}`, (signal) => api.get("/api/v1/gateways/{gateway}/agents", { path: { gateway: id }, signal }));
  const agents = loaded.data?.agents ?? [];
  usePoll(loaded, pollSeconds(agents, useDashboard().pollSeconds.gateways));
  const [isNew, setNew] = useState(false);
  const canMake = mayChange && loaded.data !== null;
  return (
    <>
      <div className="page-head">
        <h1>Gateway <AgentText text={id} form="inline" /></h1>
        {gateway !== null && <StateChip state={gateway.state} tone={gatewayTone(gateway.state)} />}
        <Link to="/gateways">All gateways</Link>
        {canMake && <button type="button" className="primary" onClick={() => setNew(true)}>New agent</button>}
      </div>
      {!mayChange && <p className="hint">Making an agent takes the role member, and an account that the gateway serves.</p>}
      {gateway !== null && !gateway.managed && (
        <p className="hint">The gateway runs elsewhere: agents that were not made here are not listed.</p>
      )}
      <AgentsNote loaded={loaded} canMake={canMake} />
      {agents.length > 0 && (
        <AgentTable
          label={`Agents of ${visibleText(id)}`} agents={agents} onOpen={(agent) => navigate(pagePath(id, agent.id))}
        />
      )}
      <Suspense>
        {isNew && (
          <NewAgent gateway={id} onDone={(made) => navigate(pagePath(id, made.id))} onClose={() => setNew(false)} />
        )}
      </Suspense>
    </>
  );
}

function AgentsNote({ loaded, canMake }: { loaded: Loaded<{ agents: unknown[] }>; canMake: boolean }) {
  const { data, error } = loaded;
  return (
    <>
      <LoadNote loaded={loaded}>{error?.status === 404 && <Link to="/gateways">Show all gateways</Link>}</LoadNote>
      {data !== null && data.agents.length === 0 && (
        <EmptyState title="The gateway has no agents">
          An agent has a name, a directory of its own, files that say how it behaves, and settings that say what it may do.
          {canMake && " Make the first one with New agent."}
        </EmptyState>
      )}
    </>
  );
}
