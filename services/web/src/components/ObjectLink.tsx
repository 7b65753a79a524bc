/** Links to the pages of objects by their ids. */
import { encodePart } from "../api/client";
import { Link } from "../base/router";
import { AgentText } from "./AgentText";

/** Returns the address of the page of a run. */
export const runPath = (id: string): string => `/sandbox/${encodePart(id)}`;

/** Returns the address of a thread in the chat. */
export const threadPath = (stateKey: string): string => `/chat/${encodePart(stateKey)}`;

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
  return <Link to={runPath(id)}><AgentText text={id} form="inline" /></Link>;
}
