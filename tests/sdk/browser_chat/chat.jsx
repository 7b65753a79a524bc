// Shows the chat of a thread: its messages, its status and its error.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useState } from "react";
import { CHAT, endRun } from "./api.js";

export function Chat({ thread, agent, stored }) {
  const [transport] = useState(() => new DefaultChatTransport({ api: CHAT, body: { graphName: agent } }));
  const chat = useChat({ id: thread, messages: stored, resume: true, transport });

  // `stop` alone closes the connection, and the run would go on.
  async function end() {
    await endRun(thread);
    await chat.stop();
  }

  return (
    <section>
      <ol id="messages">
        {chat.messages.map((message) => <Message key={message.id} message={message} />)}
      </ol>
      <output id="status">{chat.status}</output>
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <Question send={(text) => chat.sendMessage({ text })} />
      <button id="again" onClick={() => chat.regenerate()}>Ask again</button>
      <button id="stop" onClick={end}>Stop</button>
    </section>
  );
}

function Question({ send }) {
  function submit(event) {
    event.preventDefault();
    send(new FormData(event.target).get("question"));
    event.target.reset();
  }
  return (
    <form id="ask" onSubmit={submit}>
      <input name="question" aria-label="Question" required />
      <button>Send</button>
    </form>
  );
}

function Message({ message }) {
  return (
    <li id={message.id} data-role={message.role}>
      {message.parts.map((part, index) => <Part key={index} part={part} />)}
    </li>
  );
}

// Text of agents is text alone: React escapes it.
function Part({ part }) {
  switch (part.type) {
    case "text":
      return <p data-part="text">{part.text}</p>;
    case "dynamic-tool":
      return (
        <details data-part="tool" data-call={part.toolCallId} data-state={part.state} open>
          <summary>{part.toolName}</summary>
          <pre>{JSON.stringify(part.input)}</pre>
          <pre>{JSON.stringify(part.output)}</pre>
        </details>
      );
    case "data-status":
      return <small data-part="phase">{part.data.phase}</small>;
    default:
      return null;
  }
}
