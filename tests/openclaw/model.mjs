// Serves streamed chat completions to gateways under test. Directives in the user's message script the answer.
//
// The newest `{{verb argument}}` of the conversation applies: `say TEXT`, `words COUNT MILLISECONDS`, `tool NAME JSON`
// (after the tool's result, a short text), `status CODE`, `overflow`, `empty`, `cut`, `hang`. Without a directive the model
// says hello. Equal conversations get equal bytes.
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const DIRECTIVE = /\{\{(\w+) ?(.*?)\}\}(?!\})/gs;
const USAGE = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 };
const OVERFLOW = "This model's maximum context length is 8192 tokens. However, your messages resulted in 99999 tokens.";

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

// Returns the newest directive, and whether a tool's result follows it.
function parseDirective(messages) {
  const from = messages.findLastIndex(({ role, content }) => role === "user" && textOf(content).match(DIRECTIVE));
  if (from < 0) return { verb: "say", argument: "Hello from the model.", answered: false };
  const [, verb, argument] = [...textOf(messages[from].content).matchAll(DIRECTIVE)].at(-1);
  return { verb, argument, answered: messages.slice(from + 1).some(({ role }) => role === "tool") };
}

function refuse(response, status, code, message) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "scripted", param: null, code } }));
}

async function stream(response, model, { verb, argument, answered }) {
  const chunk = (choices, more = {}) => {
    const event = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model, choices, ...more };
    response.write(`data: ${JSON.stringify(event)}\n\n`);
  };
  const send = (delta, finish_reason = null) => chunk([{ index: 0, delta, finish_reason }]);
  response.writeHead(200, { "content-type": "text/event-stream" });
  send({ role: "assistant", content: "" });
  let finish = "stop";
  if (verb === "tool" && !answered) {
    const [name, ...json] = argument.split(" ");
    send({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name, arguments: json.join(" ") } }] });
    finish = "tool_calls";
  } else if (verb !== "empty") {
    const [count, pause] = verb === "words" ? argument.split(" ").map(Number) : [0, 20];
    const words = verb === "words" ? Array.from({ length: count }, (_, index) => `w${index + 1}`) : null;
    for (const word of words ?? (verb === "say" ? argument : "Done with it.").split(" ")) {
      if (response.destroyed) return;
      send({ content: `${word} ` });
      await sleep(pause);
    }
  }
  if (verb === "cut") return response.destroy();
  send({}, finish);
  chunk([], { usage: USAGE });
  response.end("data: [DONE]\n\n");
}

// Starts a model. Returns its port, the calls it received (`{ url, headers, body }`), and a function that stops it.
export async function startModel() {
  const calls = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    calls.push({ url: request.url, headers: request.headers, body });
    const directive = parseDirective(body.messages);
    if (directive.verb === "hang") return;
    if (directive.verb === "status") return refuse(response, +directive.argument, null, `scripted error ${directive.argument}`);
    if (directive.verb === "overflow") return refuse(response, 400, "context_length_exceeded", OVERFLOW);
    await stream(response, body.model, directive);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: server.address().port, calls, stop };
}
