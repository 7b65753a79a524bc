/** Gateways of the configuration, with the state of each and what a check of it found. */
import { type Schemas, api, encodePart } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link } from "../../../base/router";
import { useSession } from "../../../base/session";
import { formatCount } from "../../../base/text/format";
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { AccountLink } from "../../../components/ObjectLink";
import { StateChip } from "../../../components/StateChip";
import { Check } from "./Check";
import { Lifecycle } from "./Lifecycle";
import { gatewayTone } from "./tone";

/** Shows the gateways that exist for the session: operators see all, others those of their account. */
export default function Gateways() {
  const gateways = useLoad("gateways", (signal) => api.get("/api/v1/gateways", { signal }));
  usePoll(gateways, useDashboard().pollSeconds.gateways);
  const { data } = gateways;
  return (
    <>
      <div className="page-head">
        <h1>Gateways</h1>
        <button type="button" onClick={gateways.reload}>Look again</button>
      </div>
      <LoadNote loaded={gateways} />
      {data !== null && data.gateways.length === 0 && <NoGateways />}
      {data?.gateways.map((gateway) => <GatewayPanel key={gateway.id} gateway={gateway} onActed={gateways.reload} />)}
    </>
  );
}

function NoGateways() {
  const { may } = useSession();
  if (!may("operator")) {
    return <EmptyState title="Your account has no gateway">An operator gives one to an account in the configuration.</EmptyState>;
  }
  return (
    <EmptyState title="There are no gateways">
      A gateway is a long-running OpenClaw. Describe one as <code>[gateways.NAME]</code> in the configuration, then{" "}
      <code>sluice gateway up NAME</code>.
    </EmptyState>
  );
}

function GatewayPanel({ gateway, onActed }: { gateway: Schemas["Gateway"]; onActed: () => void }) {
  const { may } = useSession();
  const { id, state, reason, managed, url, account, attribution, agents, maxConcurrentSessions } = gateway;
  return (
    <section className="panel stack" aria-label={`Gateway ${visibleText(id)}`}>
      <div className="bar-line">
        <h2><AgentText text={id} form="inline" /></h2>
        <StateChip state={state} tone={gatewayTone(state)} />
        {reason !== undefined && <AgentText text={reason} form="inline" />}
        <Link to={`/gateways/${encodePart(id)}`}>Agents<span className="visually-hidden"> of {visibleText(id)}</span></Link>
      </div>
      <dl className="facts">
        <Fact name="Where">{managed ? "container of this host" : (url ?? "elsewhere")}</Fact>
        <Fact name="Account">{account === null ? "shared" : <AccountLink id={account} />}</Fact>
        <Fact name="Sessions at a time">{formatCount(maxConcurrentSessions)}</Fact>
        <Fact name="Calls matched by">{attribution}</Fact>
        <Fact name="Configured agents">{agents === null ? "its own" : agents.join(", ")}</Fact>
      </dl>
      {may("operator") && managed && <Lifecycle gateway={gateway} onActed={onActed} />}
      {may("operator") && <Check gateway={id} />}
    </section>
  );
}
