/** Gateways of the configuration, with the state of each and what a check of it found. */
import { type Schemas, api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { useSession } from "../../../base/session";
import { formatCount } from "../../../base/text/format";
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { LoadNote, RoleNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { AccountLink } from "../../../components/ObjectLink";
import { StateChip, type Tone } from "../../../components/StateChip";
import { Check } from "./Check";

const TONES = new Map<string, Tone>([["up", "good"], ["starting", "busy"], ["down", "bad"], ["unknown", "warn"]]);

/** Shows the gateways. */
export default function Gateways() {
  const { may } = useSession();
  return may("operator") ? <List /> : <RoleNote role="operator" />;
}

function List() {
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
      {data !== null && data.gateways.length === 0 && (
        <EmptyState title="There are no gateways">
          A gateway is a long-running OpenClaw. Describe one as <code>[gateways.NAME]</code> in the configuration, then{" "}
          <code>sluice gateway up NAME</code>.
        </EmptyState>
      )}
      {data?.gateways.map((gateway) => <GatewayPanel key={gateway.id} gateway={gateway} />)}
    </>
  );
}

function GatewayPanel({ gateway }: { gateway: Schemas["Gateway"] }) {
  const { id, state, reason, managed, url, account, attribution, agents, maxConcurrentSessions } = gateway;
  return (
    <section className="panel stack" aria-label={`Gateway ${visibleText(id)}`}>
      <div className="bar-line">
        <h2><AgentText text={id} form="inline" /></h2>
        <StateChip state={state} tone={TONES.get(state) ?? "idle"} />
        {reason !== undefined && <AgentText text={reason} form="inline" />}
        {state === "down" && managed && (
          <span className="muted">Start it: <code>sluice gateway up <AgentText text={id} form="inline" /></code></span>
        )}
      </div>
      <dl className="facts">
        <Fact name="Where">{managed ? "container of this host" : (url ?? "elsewhere")}</Fact>
        <Fact name="Account">{account === null ? "shared" : <AccountLink id={account} />}</Fact>
        <Fact name="Sessions at a time">{formatCount(maxConcurrentSessions)}</Fact>
        <Fact name="Calls matched by">{attribution}</Fact>
        <Fact name="Agents">{agents === null ? "its own" : agents.join(", ")}</Fact>
      </dl>
      <Check gateway={id} />
    </section>
  );
}
