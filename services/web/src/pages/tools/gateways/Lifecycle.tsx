/** Starts and stops a managed gateway, and shows what it printed. */
import { useState } from "react";
import { type Schemas, api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { announce } from "../../../base/announce";
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";
import { Confirm } from "../../../components/Dialog";
import { LoadNote } from "../../../components/LoadNote";
import { outcomeText } from "./outcome";

/** Properties: the gateway, and what is called once an action was taken. */
export interface LifecycleProps {
  gateway: Schemas["Gateway"];
  onActed: () => void;
}

/** Renders the buttons, and the log below them. */
export function Lifecycle({ gateway, onActed }: LifecycleProps) {
  const [asked, setAsked] = useState<"start" | "stop" | null>(null);
  const [isLogShown, setLogShown] = useState(false);
  const [outcome, setOutcome] = useState<string | null>(null);
  const path = { gateway: gateway.id };
  const act = async (action: "start" | "stop") => {
    const done = await (action === "start"
      ? api.post("/api/v1/gateways/{gateway}/start", { path })
      : api.post("/api/v1/gateways/{gateway}/stop", { path }));
    const text = outcomeText(done);
    setOutcome(text);
    announce(`${gateway.id}: ${text}`);
    onActed();
  };
  const isDown = gateway.state === "down";
  const name = visibleText(gateway.id);
  return (
    <div className="stack">
      <div className="bar-line">
        {isDown
          ? <button type="button" onClick={() => setAsked("start")}>Start …<span className="visually-hidden"> {name}</span></button>
          : <button type="button" onClick={() => setAsked("stop")}>Stop …<span className="visually-hidden"> {name}</span></button>}
        {!isDown && (
          <button type="button" aria-expanded={isLogShown} onClick={() => setLogShown(!isLogShown)}>
            Log<span className="visually-hidden"> of {name}</span>
          </button>
        )}
        {outcome !== null && <span className="muted"><AgentText text={outcome} form="inline" /></span>}
      </div>
      {isLogShown && !isDown && <Log gateway={gateway.id} />}
      {asked === "start" && (
        <Confirm title="Start the gateway" action="Start" onConfirm={() => act("start")} onClose={() => setAsked(null)}>
          <p><AgentText text={gateway.id} form="inline" /> starts in a container without a network. It answers after about 12 s.</p>
        </Confirm>
      )}
      {asked === "stop" && (
        <Confirm title="Stop the gateway" action="Stop" tone="danger" onConfirm={() => act("stop")} onClose={() => setAsked(null)}>
          <p>
            Sessions of <AgentText text={gateway.id} form="inline" /> get a moment to end, and are then cut. Its conversations and its
            agents’ files stay.
          </p>
        </Confirm>
      )}
    </div>
  );
}

function Log({ gateway }: { gateway: string }) {
  const log = useLoad(`log ${gateway}`, (signal) => api.get("/api/v1/gateways/{gateway}/log", { path: { gateway }, signal }));
  return (
    <div className="stack">
      <div className="bar-line">
        <button type="button" onClick={log.reload}>Read again</button>
        <span className="muted">the last 500 lines</span>
      </div>
      <LoadNote loaded={log} />
      {log.data !== null && <AgentText text={log.data.text === "" ? "It has printed nothing." : log.data.text} form="block" />}
    </div>
  );
}
