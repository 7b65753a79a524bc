// What the real OpenClaw makes of an error answer: whether it asks again, and whether it shuts the provider for others.
//
// usage: scripts/openclaw.sh node tests/openclaw/classify.mjs <ROWS
//
// One JSON line in, one out, in the same order. In: `status`, `body` (the answer's exact bytes) and, if wanted, `api`
// (`openai-completions`, `openai-responses` or `anthropic-messages`) and `headers`. Out:
//   reason    OpenClaw's own: `format` is what a final refusal wants, null is "unclassified"
//   final     one call and no harm: `format`, and none of the following. A gateway with fallback models still calls
//             once for each of them, whatever the answer says
//   repeats   why it may call again: `transient` (it may pass), `elsewhere` (another stored key might do),
//             `thinking` (another level might), `compaction` (there may be something to compact)
//   locks     what it shuts for every session: `key` (any key of the provider), `profile` (only one stored as an
//             authentication profile, not one written into the configuration), or null
//   calls     how many HTTP calls its client made on its own (its SDK is told not to repeat)
//   message   the text that it judged; `code` and `type` as it read them
//
// Everything is the package's own code: its transport (with the official SDK) calls a server in this process, and its
// functions judge the message that comes of it. Its files are named by hash, so functions are found by name.
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const PACKAGE = process.env.OPENCLAW_PACKAGE;
const CONTEXT_WINDOW = 200_000;
const REPEATED_REASONS = ["rate_limit", "overloaded", "server_error", "timeout"]; // maybeRetryTransient
const KEY_REASONS = ["auth", "auth_permanent", "billing"]; // markInlineProviderApiKeyFailure
const UNCLASSIFIED = [null, "no_error_details", "unclassified", "unknown"]; // handleEmbeddedAssistantFailure

if (!PACKAGE) throw new Error("OPENCLAW_PACKAGE is not set: run this with scripts/openclaw.sh node");

const load = (path) => import(pathToFileURL(`${PACKAGE}/${path}`));

// The function `name` out of the one file of `dist` whose name begins with `file` and that exports it.
async function internal(file, name) {
  const pattern = new RegExp(`^${file}-[\\w-]{8}\\.mjs$`);
  for (const candidate of readdirSync(`${PACKAGE}/dist`).filter((entry) => pattern.test(entry))) {
    const found = Object.values(await load(`dist/${candidate}`)).find((value) => value?.name === name);
    if (found) return found;
  }
  throw new Error(`${name} is not in ${file}-*.mjs: is this another version of OpenClaw?`);
}

const { createBoundaryAwareStreamFnForModel } = await load("../@openclaw/ai/dist/transports.mjs");
const { isContextOverflow } = await load("../@openclaw/ai/dist/internal/runtime.mjs");
const classifyAssistantFailoverReason = await internal("assistant-message-failures", "classifyAssistantFailoverReason");
const isCloudCodeAssistFormatError = await internal("classify-core", "isCloudCodeAssistFormatError");
const pickFallbackThinkingLevel = await internal("embedded-agent-helpers", "pickFallbackThinkingLevel");
const resolveProfileFailure = await internal("auth-profile-failure-policy", "resolveAuthProfileFailureReason");

// The assistant message with which the package's transport ends when it is given this answer.
async function fail({ status, body, headers = {}, api = "openai-completions" }) {
  let calls = 0;
  const server = createServer((request, response) => {
    calls += 1;
    request.resume().on("end", () => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const model = {
    id: "test-model",
    name: "test-model",
    api,
    provider: "cogni",
    baseUrl: `http://127.0.0.1:${server.address().port}${api === "anthropic-messages" ? "" : "/v1"}`,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: CONTEXT_WINDOW,
    maxTokens: 1000,
  };
  const context = { messages: [{ role: "user", content: "hello", timestamp: 0 }] };
  const stream = await createBoundaryAwareStreamFnForModel(model)(model, context, { apiKey: "unused" });
  const message = await stream.result();
  server.closeAllConnections();
  await once(server.close(), "close");
  return { calls, message };
}

function judge({ calls, message }) {
  if (calls === 0) throw new Error(`the transport made no call: ${message.errorMessage}`);
  const { stopReason, errorMessage = null, errorCode = null, errorType = null } = message;
  const reason = classifyAssistantFailoverReason(message);
  const blamed = resolveProfileFailure({ failoverReason: reason, providerStarted: true });
  const locks = KEY_REASONS.includes(blamed) ? "key" : blamed && "profile";
  const repeats = Object.entries({
    transient: REPEATED_REASONS.includes(reason) || UNCLASSIFIED.includes(reason),
    elsewhere: isCloudCodeAssistFormatError(errorMessage ?? "") || reason !== "format",
    thinking: pickFallbackThinkingLevel({ message: errorMessage, attempted: new Set(["minimal"]) }) !== undefined,
    compaction: reason === "context_overflow" || isContextOverflow(message, CONTEXT_WINDOW),
  }).flatMap(([name, yes]) => (yes ? [name] : []));
  const final = stopReason === "error" && reason === "format" && calls === 1 && !locks && repeats.length === 0;
  return { reason, final, repeats, locks, calls, message: errorMessage, code: errorCode, type: errorType };
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) console.log(JSON.stringify(judge(await fail(JSON.parse(line)))));
}
