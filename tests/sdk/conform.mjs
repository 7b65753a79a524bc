// Makes every kind of call that the official Node SDKs support, against each of several targets. Prints one JSON line
// per case and target, with the values that must be equal for all targets. tests/clients/sdk.rs compares them.
//
// usage: scripts/sdks.sh node tests/sdk/conform.mjs TARGET...
//
// Targets, lines and cases are those of conform.py, as far as Node's SDKs support what Python's do.
import { Target, comparable, failure, tokens } from "./target.mjs";

// Any upstream reads its script from the model's name: see bench/src/upstream/script and tests/sdk/aimock.json.
const [MODEL, TOOLS, LONG] = ["fake", "fake-tools", "fake-words1000-gap20ms"];
const HELLO = [{ role: "user", content: "Say hello." }];
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const CITY = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const FUNCTION = { name: "get_weather", description: "What the sky does.", parameters: CITY, strict: true };
const CHAT_TOOL = { type: "function", function: FUNCTION };
const RESPONSES_TOOL = { type: "function", ...FUNCTION };
const MESSAGES_TOOL = { name: "get_weather", description: "What the sky does.", input_schema: CITY };
const IMAGE = { type: "image", source: { type: "base64", media_type: "image/png", data: DOT } };

async function all(stream) {
  const events = [];
  for await (const event of await stream) events.push(event);
  return events;
}

// Reads three texts and abandons the stream.
async function some(stream, textOf) {
  const texts = [];
  for await (const event of await stream) {
    const text = textOf(event);
    if (text) texts.push(text);
    if (texts.length === 3) break; // this ends the request
  }
  return texts;
}

const chat = ({ openai }, more) => openai.chat.completions.create({ model: MODEL, messages: HELLO, ...more });
// Not stored, as clients concerned about their data request, and as Sluicegate enforces.
const UNSTORED = { model: MODEL, input: "Say hello.", store: false };
const responses = ({ openai }, more) => openai.responses.create({ ...UNSTORED, ...more });
const embeddings = ({ openai }, more) => openai.embeddings.create({ model: MODEL, input: "one", ...more });
const messages = ({ anthropic }, more) =>
  anthropic.messages.create({ model: MODEL, max_tokens: 2000, messages: HELLO, ...more });

const CASES = {
  chat_plain: (target) => chat(target),
  chat_streamed: (target) => all(chat(target, { stream: true })),
  chat_streamed_with_usage: (target) => all(chat(target, { stream: true, stream_options: { include_usage: true } })),
  chat_stream_helper: ({ openai }) =>
    openai.chat.completions.stream({ model: MODEL, messages: HELLO }).finalChatCompletion(),
  chat_tools: (target) => chat(target, { model: TOOLS, tools: [CHAT_TOOL], parallel_tool_calls: true }),
  chat_tools_streamed: (target) => all(chat(target, { model: TOOLS, tools: [CHAT_TOOL], stream: true })),
  chat_tool_results: (target) => {
    const call = (id) => ({ id, type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } });
    const result = (tool_call_id) => ({ role: "tool", tool_call_id, content: "Rain, see https://e.org" });
    const calls = { role: "assistant", content: null, tool_calls: [call("call_1"), call("call_2")] };
    return chat(target, { messages: [...HELLO, calls, result("call_1"), result("call_2")], tools: [CHAT_TOOL] });
  },
  chat_answer_sent_back: async (target) => {
    const [{ message }] = (await chat(target)).choices;
    return chat(target, { messages: [...HELLO, message, ...HELLO] });
  },
  chat_json_schema: ({ openai }) => {
    const json_schema = { name: "answer", strict: true, schema: CITY };
    const response_format = { type: "json_schema", json_schema };
    return openai.chat.completions.parse({ model: MODEL, messages: HELLO, response_format });
  },
  chat_image: (target) => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${DOT}` } };
    return chat(target, { messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, image] }] });
  },
  chat_sampling: (target) =>
    chat(target, { n: 2, seed: 7, stop: ["\n"], logprobs: true, top_logprobs: 2, temperature: 0.5, top_p: 0.9 }),
  chat_reasoning: (target) => chat(target, { reasoning_effort: "low", verbosity: "low", max_completion_tokens: 50 }),
  chat_with_response: async (target) => {
    const { data, response } = await chat(target).withResponse();
    return [response.status, response.headers.get("content-type").split(";")[0], data];
  },
  chat_concurrently: (target) => Promise.all(Array.from({ length: 4 }, () => chat(target))),
  chat_abandoned: (target) =>
    some(chat(target, { model: LONG, stream: true }), (event) => event.choices[0]?.delta.content),
  chat_after_one_that_was_abandoned: (target) => chat(target),
  chat_error_in_the_middle: async (target) => {
    const texts = [];
    try {
      for await (const event of await chat(target, { model: "fake-errmid3", stream: true })) {
        texts.push(event.choices[0].delta.content ?? null);
      }
    } catch (error) {
      return [texts, failure(error)];
    }
    return texts;
  },
  completions_plain: ({ openai }) => openai.completions.create({ model: MODEL, prompt: "Say hello.", max_tokens: 9 }),
  completions_streamed: ({ openai }) =>
    all(openai.completions.create({ model: MODEL, prompt: "Say hello.", stream: true })),
  completions_streamed_with_usage: ({ openai }) => {
    const more = { stream: true, stream_options: { include_usage: true } };
    return all(openai.completions.create({ model: MODEL, prompt: "Say hello.", ...more }));
  },
  responses_plain: (target) => responses(target, { instructions: "Be short.", max_output_tokens: 99 }),
  responses_stored_unless_said: (target) => responses(target, { store: undefined }),
  responses_streamed: (target) => all(responses(target, { stream: true })),
  responses_stream_helper: ({ openai }) => openai.responses.stream(UNSTORED).finalResponse(),
  responses_tools: (target) => responses(target, { model: TOOLS, tools: [RESPONSES_TOOL], tool_choice: "required" }),
  responses_tool_result: (target) => {
    const call = { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' };
    const result = { type: "function_call_output", call_id: "call_1", output: "Rain, see https://e.org" };
    return responses(target, { input: [...HELLO, call, result], tools: [RESPONSES_TOOL] });
  },
  responses_reasoning: (target) =>
    responses(target, { reasoning: { effort: "low", summary: "auto" }, include: ["reasoning.encrypted_content"] }),
  responses_answer_sent_back: async (target) => {
    const { output } = await responses(target);
    return responses(target, { input: [...HELLO, ...output, ...HELLO] });
  },
  responses_structured: ({ openai }) => {
    const format = { type: "json_schema", name: "answer", schema: CITY, strict: true };
    return openai.responses.parse({ ...UNSTORED, text: { format } });
  },
  embeddings_as_the_sdk_wants_them: (target) => embeddings(target, { input: ["one", "two"] }),
  embeddings_floats: (target) => embeddings(target, { encoding_format: "float" }),
  embeddings_base64: (target) => embeddings(target, { encoding_format: "base64" }),
  models: async ({ openai }) => {
    const listed = await all(openai.models.list());
    return listed.find((model) => model.id === MODEL).object;
  },
  models_one: async ({ openai }) => (await openai.models.retrieve(MODEL)).object,
  messages_plain: (target) => messages(target, { stop_sequences: ["END"], metadata: { user_id: "somebody" } }),
  messages_streamed: (target) => all(messages(target, { stream: true })),
  messages_stream_helper: ({ anthropic }) =>
    anthropic.messages.stream({ model: MODEL, max_tokens: 99, messages: HELLO }).finalMessage(),
  messages_tools: (target) => messages(target, { model: TOOLS, tools: [MESSAGES_TOOL], tool_choice: { type: "any" } }),
  messages_tools_streamed: (target) => all(messages(target, { model: TOOLS, tools: [MESSAGES_TOOL], stream: true })),
  messages_tool_result: (target) => {
    const use = { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Paris" } };
    const text = { type: "text", text: "Rain, see https://e.org" };
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: [text, IMAGE] };
    const turns = [...HELLO, { role: "assistant", content: [use] }, { role: "user", content: [result] }];
    return messages(target, { messages: turns, tools: [MESSAGES_TOOL] });
  },
  messages_answer_sent_back: async (target) => {
    const { content } = await messages(target);
    return messages(target, { messages: [...HELLO, { role: "assistant", content }, ...HELLO] });
  },
  messages_cached_system: (target) => {
    const cache_control = { type: "ephemeral" };
    const tools = [{ ...MESSAGES_TOOL, cache_control }];
    return messages(target, { system: [{ type: "text", text: "Be short.", cache_control }], tools });
  },
  messages_image: (target) => {
    const content = [IMAGE, { type: "text", text: "What is it?" }];
    return messages(target, { messages: [{ role: "user", content }] });
  },
  messages_thinking: (target) => messages(target, { thinking: { type: "enabled", budget_tokens: 1024 } }),
  messages_beta: ({ anthropic }) => {
    const betas = ["interleaved-thinking-2025-05-14"];
    return anthropic.beta.messages.create({ model: MODEL, max_tokens: 99, messages: HELLO, betas });
  },
  messages_abandoned: (target) => some(messages(target, { model: LONG, stream: true }), (event) => event.delta?.text),
  messages_counted: ({ anthropic }) =>
    anthropic.messages.countTokens({ model: MODEL, messages: HELLO, system: "Be short." }),
  ...Object.fromEntries(
    // The statuses that SDKs have classes for, each in both dialects.
    [400, 404, 429, 500, 503].flatMap((status) => [
      [`chat_${status}`, (target) => chat(target, { model: `fake-status${status}` })],
      [`chat_streamed_${status}`, (target) => all(chat(target, { model: `fake-status${status}`, stream: true }))],
      [`messages_${status}`, (target) => messages(target, { model: `fake-status${status}` })],
    ]),
  ),
  chat_retried: ({ openai }) =>
    openai.chat.completions.create({ model: "fake-status503", messages: HELLO }, { maxRetries: 1 }),
  messages_retried: ({ anthropic }) => {
    const body = { model: "fake-status503", max_tokens: 9, messages: HELLO };
    return anthropic.messages.create(body, { maxRetries: 1 });
  },
  chat_timed_out: ({ openai }) =>
    openai.chat.completions.create({ model: "fake-firstbyte2000ms", messages: HELLO }, { timeout: 500 }),
  refused_unknown_field: (target) => chat(target, { fallbacks: [MODEL] }),
  refused_media_url: (target) => {
    const image = { type: "image_url", image_url: { url: "http://127.0.0.1:9/a.png" } };
    return chat(target, { messages: [{ role: "user", content: [image] }] });
  },
  refused_tool: (target) => responses(target, { tools: [{ type: "web_search_preview" }] }),
};

async function run(target, name) {
  target.begin();
  let [ok, digest] = [true, null];
  try {
    digest = await CASES[name](target);
  } catch (error) {
    [ok, digest] = [false, failure(error)];
  }
  const { calls, ids } = target;
  return { target: target.name, case: name, ok, digest: comparable(digest), calls, ids, tokens: tokens(digest) };
}

for (const argument of process.argv.slice(2)) {
  const target = new Target(JSON.parse(argument));
  for (const name of Object.keys(CASES)) console.log(JSON.stringify(await run(target, name)));
}
process.exit(); // open connections would keep the process alive
