/**
 * Sends orders of the chat to the API and reads their answers. An order has the last question alone: the thread is what the
 * store has, and nothing that a page keeps decides about it.
 */
import type { Chat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { buildPath, send } from "../../api/client";
import type { Order } from "./link";
import { type ChatMessage, field } from "./message";

const CHAT = "/api/v1/ai/chat";

/** What an order says beside its question: the agent, the agent of its gateway, and of a regeneration the answer and a random id. */
export interface OrderFields {
  graphName?: string;
  gatewayAgent?: string;
  messageId?: string;
  requestId?: string;
}

/** Returns the body of an order. */
export function orderBody(thread: string, messages: ChatMessage[], trigger: string, fields: OrderFields): object {
  const question = messages.findLast((message) => message.role === "user");
  const parts = question?.parts.filter((part) => part.type === "text").map(({ type, text }) => ({ type, text }));
  return { ...fields, id: thread, trigger, message: { id: question?.id, role: "user", parts } };
}

function fieldsOf(body: unknown): OrderFields {
  const names = ["graphName", "gatewayAgent", "messageId", "requestId"] as const;
  return Object.fromEntries(names.flatMap((name) => {
    const value = field(body, name);
    return typeof value === "string" ? [[name, value]] : [];
  }));
}

/** Returns the transport of a chat. `onAnswered` is called when the server has begun to stream an answer. */
export function chatTransport(onAnswered: () => void): DefaultChatTransport<ChatMessage> {
  return new DefaultChatTransport<ChatMessage>({
    api: CHAT,
    fetch: async (input, init) => {
      const headers = { accept: "text/event-stream" };
      const request: RequestInit = { headers, cache: "no-store" };
      if (init?.body !== undefined) request.body = init.body;
      if (init?.signal !== undefined) request.signal = init.signal;
      const response = await send(init?.method === "POST" ? "post" : "get", String(input), request);
      if (response.status !== 204) onAnswered();
      return response;
    },
    prepareSendMessagesRequest: ({ id, messages, trigger, body }) => ({ body: orderBody(id, messages, trigger, fieldsOf(body)) }),
    prepareReconnectToStreamRequest: ({ id }) => ({ api: buildPath(`${CHAT}/{thread}/stream`, { thread: id }) }),
  });
}

/** Places `order`. A question that is shown already is sent again under its id, so that it is the same run. */
export async function place(chat: Chat<ChatMessage>, order: Order): Promise<void> {
  const { agent, gatewayAgent } = order;
  const fields: OrderFields = { ...(agent === null ? {} : { graphName: agent }), ...(gatewayAgent === null ? {} : { gatewayAgent }) };
  if (order.kind === "regenerate") {
    const { answerId, requestId } = order;
    return chat.regenerate({ messageId: answerId, body: { ...fields, messageId: answerId, requestId } });
  }
  const { id, text } = order;
  const metadata = { createdAt: new Date().toISOString() };
  const question: ChatMessage = { id, role: "user", parts: [{ type: "text", text }], metadata };
  return chat.sendMessage(chat.messages.at(-1)?.id === id ? undefined : question, { body: fields });
}
