/** Reads the messages before those that are shown. */
import type { Chat } from "@ai-sdk/react";
import { useState } from "react";
import { type ApiError, toApiError } from "../../api/problem";
import { ErrorNote } from "../../components/Notes";
import { readPage } from "./access";
import type { ChatMessage } from "./message";

/** Properties: where the messages before begin; null if there are none. */
export interface EarlierProps {
  thread: string;
  cursor: string | null;
  chat: Chat<ChatMessage>;
}

/** Renders the button. */
export function Earlier({ thread, cursor, chat }: EarlierProps) {
  const [next, setNext] = useState(cursor);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  if (next === null) return null;
  const read = async () => {
    setBusy(true);
    setError(null);
    try {
      const page = await readPage(thread, next);
      chat.messages = [...page.messages, ...chat.messages];
      setNext(page.cursor);
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <div className="chat-earlier">
      <button type="button" className="quiet" disabled={isBusy} onClick={() => void read()}>
        {isBusy ? "Reading …" : "Show earlier messages"}
      </button>
      {error !== null && <ErrorNote error={error} />}
    </div>
  );
}
