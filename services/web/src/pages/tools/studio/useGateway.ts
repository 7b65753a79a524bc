/** Reads one gateway of the list, and whether the session may change its agents. */
import { type Schemas, api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { useSession } from "../../../base/session";

/** Gateway; null until it is known, and if it does not exist for the session. */
export interface GatewayUse {
  gateway: Schemas["Gateway"] | null;
  /** Whether the answer about it has yet to come. */
  isPending: boolean;
  /** Until the gateway is known, the role decides. The server judges each change in any case. */
  mayChange: boolean;
}

/** Returns the gateway `id`. */
export function useGateway(id: string): GatewayUse {
  const { may } = useSession();
  const { data, error } = useLoad("gateways", (signal) => api.get("/api/v1/gateways", { signal }));
  const gateway = data?.gateways.find((one) => one.id === id) ?? null;
  const isPending = data === null && error === null;
  return { gateway, isPending, mayChange: may("member") && (gateway?.manageable ?? true) };
}
