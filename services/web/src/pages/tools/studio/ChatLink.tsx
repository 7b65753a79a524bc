/** Leads from an agent of a gateway to a chat with it, by way of an agent of the catalog that runs at the gateway. */
import { api, encodePart } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { Link } from "../../../base/router";
import { useSession } from "../../../base/session";
import { type GatewayAgent, chatPath } from "./agents";

/** Renders the link; says what is missing if no agent of the catalog runs at the gateway. */
export function ChatLink({ agent }: { agent: GatewayAgent }) {
  const { may } = useSession();
  const { data } = useLoad("agents", (signal) => api.get("/api/v1/agents", { signal }));
  if (!may("member") || agent.state === "removing" || agent.source === "configuration" || data === null) return null;
  const way = data.agents.find((one) => one.mayOrder && one.canRun && one.gateways.includes(agent.gateway));
  if (way === undefined) {
    return <span className="muted">To chat, describe an agent with <code>mode = "gateway"</code> in the configuration</span>;
  }
  return <Link to={chatPath(encodePart(way.agentId), encodePart(agent.id))}>Chat with it</Link>;
}
