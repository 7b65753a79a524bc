/** Links to the pages of objects by their ids. */
import { encodePart } from "../api/client";
import { Link } from "../base/router";
import { AgentText } from "./AgentText";

/** Link to an account. */
export function AccountLink({ id }: { id: string }) {
  return <Link to={`/accounts/${encodePart(id)}`}><AgentText text={id} form="inline" /></Link>;
}

/** Link to an agent of a gateway. */
export function GatewayAgentLink({ gateway, id }: { gateway: string; id: string }) {
  return <Link to={`/gateways/${encodePart(gateway)}/${encodePart(id)}`}><AgentText text={id} form="inline" /></Link>;
}

/** Link to a run. */
export function RunLink({ id }: { id: string }) {
  return <Link to={`/sandbox/${encodePart(id)}`}><AgentText text={id} form="inline" /></Link>;
}
