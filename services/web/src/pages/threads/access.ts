/** Reads and stops one thread over the API. */
import type { ChatTransport } from "ai";
import { api } from "../../api/client";
import { type ChatMessage, readMessages } from "./message";

/** Part of the API that a conversation needs. */
export interface ThreadAccess {
  /** Returns the last messages of the thread, as the store has them. */
  read: () => Promise<ChatMessage[]>;
  /** Asks for the end of the run that is active in the thread. */
  stop: () => Promise<void>;
}

/** What a conversation begins with. `transport` is given what to call when an answer begins. */
export interface SessionOptions {
  thread: string;
  messages: ChatMessage[];
  access: ThreadAccess;
  transport: (onAnswered: () => void) => ChatTransport<ChatMessage>;
  onEnded: () => void;
  /** Called with a question that was not ordered because the session has ended. */
  onUnsent: (text: string) => void;
}

/** Page of a thread: messages, and where those before them begin. */
export interface MessagePage {
  messages: ChatMessage[];
  cursor: string | null;
}

/** Returns the last page of a thread, or the one before `cursor`. */
export async function readPage(thread: string, cursor: string | null, signal?: AbortSignal): Promise<MessagePage> {
  const query = cursor === null ? {} : { cursor };
  const page = await api.get("/api/v1/threads/{thread}", { path: { thread }, query, ...(signal === undefined ? {} : { signal }) });
  return { messages: readMessages(page.messages), cursor: page.nextCursor };
}

/** Returns the access to a thread. */
export function threadAccess(thread: string): ThreadAccess {
  return {
    read: async () => (await readPage(thread, null)).messages,
    stop: async () => void (await api.post("/api/v1/ai/chat/{thread}/stop", { path: { thread } })),
  };
}
