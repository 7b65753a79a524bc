// Reports how the real OpenClaw handles an error answer: whether it retries, and whether it locks the provider.
//
// usage: scripts/openclaw.sh node tests/openclaw/classify.mjs <ROWS
//
// Reads JSON lines and prints one for each, in the same order. Input: `status`, `body` (the answer's exact bytes), optionally
// `api` (`openai-completions`, `openai-responses` or `anthropic-messages`) and `headers`. Output:
//   reason    OpenClaw's own: `format` for a final refusal, null for "unclassified"
//   final     whether OpenClaw makes one call and neither retries nor locks. A gateway with fallback models still calls
//             once for each of them
//   repeats   why it may retry: `transient` (the error may pass), `elsewhere` (another stored key may work), `thinking`
//             (another thinking level may work), `compaction` (a shorter conversation may fit)
//   locks     what it locks for every session: `key` (any key of the provider), `profile` (only a key stored as an
//             authentication profile, not one from the configuration), or null
//   calls     number of HTTP calls that its client made (retries of its SDK are off)
//   message   the text that it classified; `code` and `type` as it read them
//
// Runs only the package's own code: its transport, with the official SDK, calls a server in this process, and its functions
// classify the resulting message. Its file names contain hashes, so functions are found by their names.
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

// Returns the function `name` from the file of `dist` whose name begins with `file`.
async function importInternal(file, name) {
  const pattern = new RegExp(`^${file}-[\\w-]{8}\\.mjs$`);
  for (const candidate of readdirSync(`${PACKAGE}/dist`).filter((entry) => pattern.test(entry))) {
    const found = Object.values(await load(`dist/${candidate}`)).find((value) => value?.name === name);
    if (found) return found;
  }
  throw new Error(`${name} is not in ${file}-*.mjs: is this another version of OpenClaw?`);
}

const { createBoundaryAwareStreamFnForModel } = await load("../@openclaw/ai/dist/transports.mjs");
const { isContextOverflow } = await load("../@openclaw/ai/dist/internal/runtime.mjs");
const classifyAssistantFailoverReason = await importInternal("assistant-message-failures", "classifyAssistantFailoverReason");
const isCloudCodeAssistFormatError = await importInternal("classify-core", "isCloudCodeAssistFormatError");
const pickFallbackThinkingLevel = await importInternal("embedded-agent-helpers", "pickFallbackThinkingLevel");
const resolveProfileFailure = await importInternal("auth-profile-failure-policy", "resolveAuthProfileFailureReason");

// Sends this answer to the package's transport. Returns the number of calls and the transport's final message.
async function callTransport({ status, body, headers = {}, api = "openai-completions" }) {
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

// Applies the package's functions to the transport's final message.
function classify({ calls, message }) {
  if (calls === 0) throw new Error(`the transport made no call: ${message.errorMessage}`);
  const { stopReason, errorMessage = null, errorCode = null, errorType = null } = message;
  const reason = classifyAssistantFailoverReason(message);
  const failure = resolveProfileFailure({ failoverReason: reason, providerStarted: true });
  const locks = KEY_REASONS.includes(failure) ? "key" : failure && "profile";
  const repeats = Object.entries({
    transient: REPEATED_REASONS.includes(reason) || UNCLASSIFIED.includes(reason),
    elsewhere: isCloudCodeAssistFormatError(errorMessage ?? "") || reason !== "format",
    thinking: pickFallbackThinkingLevel({ message: errorMessage, attempted: new Set(["minimal"]) }) !== undefined,
    compaction: reason === "context_overflow" || isContextOverflow(message, CONTEXT_WINDOW),
  }).flatMap(([name, applies]) => (applies ? [name] : []));
  const final = stopReason === "error" && reason === "format" && calls === 1 && !locks && repeats.length === 0;
  return { reason, final, repeats, locks, calls, message: errorMessage, code: errorCode, type: errorType };
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) console.log(JSON.stringify(classify(await callTransport(JSON.parse(line)))));
}
