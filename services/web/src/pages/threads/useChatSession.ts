/** Holds the conversation of a page: begins it, and ends its connection when the page is left or hidden. */
import { useChat } from "@ai-sdk/react";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { threadAccess } from "./access";
import { type FirstQuestion, dropFirst } from "./drafts";
import type { SessionView } from "./link";
import { type ChatMessage, mergeTail } from "./message";
import { ChatSession } from "./session";
import { chatTransport } from "./transport";

/** React is given new messages at most this often. */
const BATCH_MS = 50;

/** What a conversation begins with: the messages of its thread, or its first question. */
export interface Begin {
  thread: string;
  messages: ChatMessage[];
  first: FirstQuestion | null;
  onEnded: () => void;
  /** Called with a question that was not ordered because the session has ended. */
  onUnsent: (text: string) => void;
}

/** Conversation of a page. */
export interface ChatUse extends SessionView {
  session: ChatSession;
  messages: ChatMessage[];
  /** Reads the thread anew, and follows the answer that is being given in it. */
  follow: () => Promise<void>;
}

/** Begins the conversation. */
export function useChatSession({ thread, messages, first, onEnded, onUnsent }: Begin): ChatUse {
  const heard = useRef({ onEnded, onUnsent });
  heard.current = { onEnded, onUnsent };
  const [session] = useState(() => {
    const access = threadAccess(thread);
    return new ChatSession({
      thread, messages, access, transport: chatTransport,
      onEnded: () => heard.current.onEnded(), onUnsent: (text) => heard.current.onUnsent(text),
    });
  });
  const shown = useChat({ chat: session.chat, throttle: BATCH_MS });
  const view = useSyncExternalStore(session.view.subscribe, session.view.get);
  useEffect(() => {
    if (first === null) session.resume();
    else if (session.send(first.text, first.agent, first.gatewayAgent)) dropFirst(thread);
    const look = () => (document.hidden ? session.hide() : session.show());
    if (document.hidden) session.hide();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      session.close();
    };
  }, [session, thread, first]);
  const follow = async () => {
    const stored = await threadAccess(thread).read();
    session.chat.messages = mergeTail(session.chat.messages, stored);
    session.resume();
  };
  return { session, messages: shown.messages, follow, ...view };
}
