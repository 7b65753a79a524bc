// Runs Claude Code in its print mode, and reads its stream of JSON.
import { joinBehaviour, projectFile } from "../lib/behaviour.mjs";
import { AgentError } from "../lib/errors.mjs";
import * as events from "../lib/events.mjs";
import { SERVER, TOOL_TIMEOUT_MS } from "../lib/host_tools.mjs";
import { parseLine } from "../lib/run.mjs";

const MAX_RETRIES = "2";
const MAX_OUTPUT_TOKENS = 32_000;
const PROJECT_FILES = ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"];

// Builds the user's instructions. They import the project's, which Claude Code leaves out with the project's settings.
function instructions(run) {
  const imports = projectFile(run, PROJECT_FILES).map((file) => `@${file}\n`);
  return [joinBehaviour(run.behaviourFiles), ...imports].join("\n");
}

// Returns the model's window, for a model that Claude Code does not know.
const windowVariables = ({ contextWindow: window }) => (window ? { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(window) } : {});

// Returns the host's tools as a server of MCP. Without `alwaysLoad`, the model would have to search for them.
const mcpServers = (url) => JSON.stringify({ mcpServers: { [SERVER]: { type: "http", url, alwaysLoad: true } } });

// Returns the warning that Claude Code prints once in each run with a model of another provider.
const unknownModel = (model) => `[claude-code:unrecognized_model] ${JSON.stringify({ model, query_source: "sdk" })}`;

export default {
  name: "claude-code",
  hostToolName: (name) => `mcp__${SERVER}__${name}`,

  command(run) {
    const { model, root, state, prompt, agentRoot, hostTools, maxOutputTokens = MAX_OUTPUT_TOKENS } = run;
    const args = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    args.push("--dangerously-skip-permissions", "--disallowedTools", "WebSearch,WebFetch");
    // A project's settings could name another endpoint or model.
    args.push("--setting-sources", "user", "--strict-mcp-config", "--model", model);
    if (hostTools) args.push("--mcp-config", `${state}/mcp.json`);
    return {
      program: `${agentRoot}/claude`,
      args,
      stdin: prompt,
      hiddenLines: [unknownModel(model)],
      files: { "config/CLAUDE.md": instructions(run), ...(hostTools ? { "mcp.json": mcpServers(hostTools) } : {}) },
      environment: {
        ANTHROPIC_BASE_URL: root,
        ANTHROPIC_API_KEY: "sluicegate",
        ANTHROPIC_MODEL: model,
        // The small model of side calls, such as summaries of a page.
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CONFIG_DIR: `${state}/config`,
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(maxOutputTokens),
        CLAUDE_CODE_MAX_RETRIES: MAX_RETRIES,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        MCP_TOOL_TIMEOUT: String(TOOL_TIMEOUT_MS),
        DISABLE_AUTOUPDATER: "1",
        DISABLE_TELEMETRY: "1",
        DISABLE_ERROR_REPORTING: "1",
        IS_SANDBOX: "1",
        ...windowVariables(run),
      },
    };
  },

  translate: () => new Translator(),
};

class Translator {
  #end = null;
  // Ids of messages whose text came in pieces already.
  #streamed = new Set();
  #message = null;

  line(line) {
    const object = parseLine(line);
    if (object === null) return [];
    if (object.type === "stream_event") return this.#piece(object);
    if (object.type === "assistant") return this.#assistant(object.message);
    if (object.type === "user") return toolResults(object.message);
    if (object.type === "result") return this.#result(object);
    return [];
  }

  end() {
    if (this.#end === null) return {};
    const { is_error: isError, subtype, result = "", errors = [] } = this.#end;
    if (subtype === "error_max_turns") return { error: new AgentError("turn_limit", "Claude Code reached its limit of turns") };
    if (isError || subtype !== "success") return { error: new AgentError("model_error", result || errors.join("; ") || subtype) };
    return { answer: result };
  }

  #piece({ event }) {
    if (event?.type === "message_start") this.#message = event.message?.id;
    if (event?.type !== "content_block_delta" || event.delta?.type !== "text_delta") return [];
    this.#streamed.add(this.#message);
    return [events.text(event.delta.text)];
  }

  #assistant({ id, model, content = [] }) {
    // Claude Code writes a failure of the model API as a message of its own. It is not an answer.
    if (model === "<synthetic>") return [];
    return content.flatMap((part) => {
      if (part.type === "tool_use") return [events.toolCall(part.id, part.name, part.input)];
      if (part.type === "text" && !this.#streamed.has(id)) return [events.text(part.text)];
      return [];
    });
  }

  #result(object) {
    this.#end = object;
    const { input_tokens: input = 0, output_tokens: output, ...of } = object.usage ?? {};
    const { cache_read_input_tokens: cached = 0, cache_creation_input_tokens: created = 0 } = of;
    // Anthropic counts cached tokens apart from the others.
    return [events.usage(input + cached + created, output, cached)];
  }
}

function toolResults({ content }) {
  if (!Array.isArray(content)) return [];
  const results = content.filter((part) => part.type === "tool_result");
  return results.map((part) => events.toolResult(part.tool_use_id, toText(part.content), part.is_error));
}

// Returns the text of a result, which is text or a list of parts.
function toText(content) {
  if (!Array.isArray(content)) return content ?? "";
  return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}
