/** Places orders with the client of the AI SDK. */
import type { Chat } from "@ai-sdk/react";
import type { Order } from "./link";
import type { ChatMessage } from "./message";
import type { OrderFields } from "./transport";

/** Places `order`. A question that is shown already is sent again under its id, so that it is the same run. */
export async function place(chat: Chat<ChatMessage>, order: Order): Promise<void> {
  const fields: OrderFields = order.agent === null ? {} : { graphName: order.agent };
  if (order.kind === "regenerate") {
    const { answerId, requestId } = order;
    return chat.regenerate({ messageId: answerId, body: { ...fields, messageId: answerId, requestId } });
  }
  const { id, text } = order;
  const metadata = { createdAt: new Date().toISOString() };
  const question: ChatMessage = { id, role: "user", parts: [{ type: "text", text }], metadata };
  return chat.sendMessage(chat.messages.at(-1)?.id === id ? undefined : question, { body: fields });
}
