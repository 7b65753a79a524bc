/** Plays the server of a conversation in tests: the answers to orders and resumptions are given in turn. */
import assert from "node:assert/strict";
import type { ChatTransport, UIMessageChunk } from "ai";
import { ApiError } from "../../api/problem";
import type { ChatMessage } from "./message";
import { ChatSession } from "./session";

/** Answer: the chunks of a stream, no active answer, a stream that breaks, or a refusal. */
export type Step = UIMessageChunk[] | "none" | "broken" | ApiError;

/** First chunk of an answer. */
export const START: Extract<UIMessageChunk, { type: "start" }> = {
  type: "start", messageId: "run-1", messageMetadata: { runId: "run-1", agentId: "a:b" },
};
/** Returns the chunks of a text. */
export const words = (text: string): UIMessageChunk[] => [
  { type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: text }, { type: "text-end", id: "t" },
];
/** Last chunk of an answer that is complete. */
export const DONE: UIMessageChunk = { type: "finish", messageMetadata: { done: true } };
/** Answer as the store has it. */
export const STORED: ChatMessage = {
  id: "run-1", role: "assistant", parts: [{ type: "text", text: "stored" }], metadata: { state: "succeeded" },
};

/** Server with the conversation that uses it. */
export class Played {
  readonly orders: { trigger: string; body: unknown; question: string | undefined }[] = [];
  resumed = 0;
  stops = 0;
  ended = 0;
  readonly unsent: string[] = [];
  readonly session: ChatSession;

  constructor(readonly sends: Step[], readonly resumes: Step[], messages: ChatMessage[] = []) {
    this.session = new ChatSession({
      thread: "thread-1", messages, onEnded: () => (this.ended += 1), onUnsent: (text) => this.unsent.push(text),
      access: { read: async () => [...messages, STORED], stop: async () => void (this.stops += 1) },
      transport: (onAnswered) => this.#transport(onAnswered),
    });
  }

  #transport(onAnswered: () => void): ChatTransport<ChatMessage> {
    const play = (step: Step): ReadableStream<UIMessageChunk> | null => {
      if (step instanceof ApiError) throw step;
      if (step === "none") return null;
      onAnswered();
      const chunks = step === "broken" ? [START, ...words("half")] : step;
      return new ReadableStream({
        start: (controller) => chunks.forEach((chunk) => controller.enqueue(chunk)),
        pull: (controller) => (step === "broken" ? controller.error(new TypeError("network error")) : controller.close()),
      });
    };
    return {
      resumeStreamIsReplay: true,
      sendMessages: async ({ trigger, body, messages }) => {
        this.orders.push({ trigger, body, question: messages.at(-1)?.id });
        return play(this.sends.shift() ?? "none") as ReadableStream<UIMessageChunk>;
      },
      reconnectToStream: async () => {
        this.resumed += 1;
        return play(this.resumes.shift() ?? "none");
      },
    };
  }

  /** Waits until the conversation is in the state `kind`. */
  async until(kind: string): Promise<void> {
    for (let tries = 0; this.session.view.get().link.kind !== kind; tries += 1) {
      assert.ok(tries < 400, `still ${this.session.view.get().link.kind}, not ${kind}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Returns the texts that are shown. */
  texts(): string[] {
    return this.session.chat.messages.map((message) => message.parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  }
}
