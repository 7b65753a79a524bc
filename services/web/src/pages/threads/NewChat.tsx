/** Takes the first question of a new thread, and opens the thread with it. */
import { useEffect, useRef } from "react";
import { encodePart, randomId } from "../../api/client";
import { useShortcuts } from "../../base/keys";
import { useLocation } from "../../base/router";
import { useSession } from "../../base/session";
import { AgentText } from "../../components/AgentText";
import { Composer } from "./Composer";
import { putFirst, useDraft } from "./drafts";
import { GatewayAgentNote, useGatewayAgent } from "./GatewayAgentNote";
import { Limits } from "./Limits";
import { chooseAgent, useAgents } from "./useAgents";

/** Renders the page without a thread. `?agent=` chooses the agent, and `?gatewayAgent=` one of its gateway. */
export function NewChat({ account }: { account: string }) {
  const { query, navigate, setQuery } = useLocation();
  const { may } = useSession();
  const agents = useAgents();
  const [text, setText] = useDraft("");
  const gatewayAgent = useGatewayAgent();
  const field = useRef<HTMLTextAreaElement>(null);
  const agent = chooseAgent(agents.list, [query.get("agent")]);
  const described = agents.list?.agents.find((one) => one.agentId === agent);
  useShortcuts([{ key: "/", label: "Write a question", run: () => field.current?.focus() }]);
  useEffect(() => {
    if (window.matchMedia("(pointer: fine)").matches) setTimeout(() => field.current?.focus());
  }, []);
  const send = (question: string) => {
    const thread = randomId("chat-");
    putFirst(thread, { text: question, agent, gatewayAgent });
    setText("");
    navigate(gatewayAgent === null ? `/chat/${thread}` : `/chat/${thread}?gatewayAgent=${encodePart(gatewayAgent)}`);
  };
  return (
    <div className="chat-main chat-new">
      <div className="chat-head">
        <h1>New chat</h1>
        <Limits account={account} round={0} />
      </div>
      {described !== undefined && (
        <p className="hint">
          <AgentText text={described.name} form="inline" />: <AgentText text={described.description} form="inline" />
        </p>
      )}
      <GatewayAgentNote />
      {may("member") ? (
        <Composer
          text={text} mode="ready" agents={agents} agent={agent} field={field} onText={setText} onSend={send}
          onAgent={(chosen) => setQuery({ agent: chosen })} onStop={() => undefined}
        />
      ) : (
        <p className="hint">To ask a question takes the role member.</p>
      )}
    </div>
  );
}
