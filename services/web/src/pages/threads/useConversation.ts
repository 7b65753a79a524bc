/** Joins what a conversation consists of: its session, the chosen agent, the draft, and the run that is watched. */
import { type RefObject, useEffect, useRef, useState } from "react";
import { type ApiError, toApiError } from "../../api/problem";
import { useShortcuts } from "../../base/keys";
import type { ComposerProps } from "./Composer";
import { keepDraft, useDraft, useOwner } from "./drafts";
import { useGatewayAgent } from "./GatewayAgentNote";
import type { Link } from "./link";
import { type Answer, readAnswer } from "./message";
import { chooseAgent, useAgents } from "./useAgents";
import { type Begin, useChatSession } from "./useChatSession";
import { useRunWatch } from "./useRunWatch";

const ACTIVE: Link["kind"][] = ["connecting", "live", "stopping", "paused", "lost"];

/** Returns the conversation. */
export function useConversation(begin: Omit<Begin, "onUnsent">) {
  const owner = useOwner();
  // The page of a thread that does not exist shows no draft: that of a new one is there again after the sign-in.
  const onUnsent = (question: string) => keepDraft(owner, begin.first === null ? begin.thread : "", question);
  const chat = useChatSession({ ...begin, onUnsent });
  const { messages, link } = chat;
  const field = useRef<HTMLTextAreaElement>(null);
  const { agent, agents, setChosen } = useAgentOf(chat.messages, begin.first?.agent ?? null);
  const [text, setText] = useDraft(begin.thread);
  const answer = answerOf(messages);
  const open = ACTIVE.includes(link.kind) && answer?.state.kind === "open" ? answer : null;
  const watch = useRunWatch(open?.runId ?? null, `${phaseOf(open)} ${messages.at(-1)?.parts.length ?? 0}`);
  const gatewayAgent = useGatewayAgent();
  const actions = useActions({ chat, agent, gatewayAgent, text, setText, field });
  useShortcuts([
    { key: "Escape", label: "Stop the answer", run: actions.stop },
    { key: "/", label: "Write a question", run: () => field.current?.focus() },
  ]);
  useEffect(() => {
    // The page of a new thread follows the one where its first question was typed.
    if (begin.first !== null) setTimeout(() => field.current?.focus());
  }, [begin.first]);
  const composer: ComposerProps = {
    text, agents, agent, field, mode: modeOf(link), onText: setText, onAgent: setChosen, onStop: actions.stop, onSend: actions.send,
  };
  return { ...chat, ...actions, answer, open, watch, composer };
}

interface ActionsUse {
  chat: ReturnType<typeof useChatSession>;
  agent: string | null;
  gatewayAgent: string | null;
  text: string;
  setText: (text: string) => void;
  field: RefObject<HTMLTextAreaElement | null>;
}

/** Returns what a person can do, and the error of what failed. */
function useActions({ chat, agent, gatewayAgent, text, setText, field }: ActionsUse) {
  const { session } = chat;
  const [error, setError] = useState<ApiError | null>(null);
  const attempt = (action: () => Promise<void>) => {
    setError(null);
    action().catch((thrown: unknown) => setError(toApiError(thrown)));
  };
  // Buttons go away when they are pressed; the focus must not.
  const keepFocus = () => {
    if (window.matchMedia("(pointer: fine)").matches) field.current?.focus();
  };
  const stop = () => {
    if (modeOf(chat.link) !== "stoppable") return;
    attempt(() => session.stop());
    keepFocus();
  };
  const retry = () => {
    session.retry();
    keepFocus();
  };
  const regenerate = () => {
    session.regenerate(agent, gatewayAgent);
    keepFocus();
  };
  const takeBack = () => {
    const question = session.takeBack();
    if (question !== "") setText(text === "" ? question : `${question}\n\n${text}`);
    field.current?.focus();
  };
  const showOther = () => {
    takeBack();
    attempt(chat.follow);
  };
  const send = (question: string) => {
    if (session.send(question, agent, gatewayAgent)) setText("");
  };
  return { error, keepFocus, stop, retry, regenerate, takeBack, showOther, send };
}

function useAgentOf(messages: Parameters<typeof answerOf>[0], first: string | null) {
  const agents = useAgents();
  const [chosen, setChosen] = useState(first);
  const last = messages.findLast((message) => message.role === "assistant");
  const agent = chooseAgent(agents.list, [chosen, last === undefined ? null : readAnswer(last).agentId]);
  return { agent, agents, setChosen };
}

function answerOf(messages: ReturnType<typeof useChatSession>["messages"]): Answer | null {
  const last = messages.at(-1);
  return last?.role === "assistant" ? readAnswer(last) : null;
}

function phaseOf(answer: Answer | null): string {
  return answer?.state.kind === "open" ? answer.state.phase : "";
}

function modeOf(link: Link): ComposerProps["mode"] {
  if (link.kind === "idle") return "ready";
  if (link.kind === "refused" || link.kind === "connecting") return "blocked";
  return link.kind === "live" || link.kind === "lost" ? "stoppable" : "busy";
}
