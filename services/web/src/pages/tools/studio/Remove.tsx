/** Asks before an agent is removed from its gateway. */
import { api } from "../../../api/client";
import { announce } from "../../../base/announce";
import { AgentText } from "../../../components/AgentText";
import { Confirm } from "../../../components/Dialog";
import type { GatewayAgent } from "./agents";

/** Properties: the agent, and what is called once its removal has begun. */
export interface RemoveProps {
  agent: GatewayAgent;
  onDone: () => void;
  onClose: () => void;
}

/** Renders the question. */
export default function Remove({ agent, onDone, onClose }: RemoveProps) {
  const remove = async () => {
    await api.delete("/api/v1/gateways/{gateway}/agents/{agent}", { path: { gateway: agent.gateway, agent: agent.id } });
    announce(`${agent.name} is being removed.`);
    onDone();
  };
  return (
    <Confirm title="Remove the agent" action="Remove" tone="danger" onConfirm={remove} onClose={onClose}>
      <p>
        <strong><AgentText text={agent.name} form="inline" /></strong> leaves the gateway{" "}
        <AgentText text={agent.gateway} form="inline" />. A run that uses it ends as it would. The files in its directory stay at the
        gateway.
      </p>
    </Confirm>
  );
}
