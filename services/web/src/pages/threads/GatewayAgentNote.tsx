/** Says which agent of a gateway is asked, as the address has it: `?gatewayAgent=` goes with each question. */
import { useLocation } from "../../base/router";
import { AgentText } from "../../components/AgentText";

/** Returns the agent of the gateway that the address names, or null. */
export function useGatewayAgent(): string | null {
  const id = useLocation().query.get("gatewayAgent") ?? "";
  return id === "" ? null : id;
}

/** Renders the agent with what leaves it out; nothing if there is none. */
export function GatewayAgentNote() {
  const { setQuery } = useLocation();
  const id = useGatewayAgent();
  if (id === null) return null;
  return (
    <p className="hint">
      Questions go to <strong><AgentText text={id} form="inline" /></strong> at the gateway of the chosen agent. Choose an agent that
      runs at that gateway.{" "}
      <button type="button" className="quiet" onClick={() => setQuery({ gatewayAgent: null })}>Ask without it</button>
    </p>
  );
}
