// Runs `codex exec`, and reads its events.
import { joinBehaviour } from "../lib/behaviour.mjs";
import { AgentError } from "../lib/errors.mjs";
import * as events from "../lib/events.mjs";
import { SERVER, TOOL_TIMEOUT_MS } from "../lib/host_tools.mjs";
import { parseLine } from "../lib/run.mjs";

// Codex's configuration. A model of its own provider would insist on a login and try a websocket first.
const configuration = ({ model, v1, contextWindow, hostTools }) => `model = ${JSON.stringify(model)}
${contextWindow ? `model_context_window = ${contextWindow}\n` : ""}\
model_provider = "sluicegate"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false

[model_providers.sluicegate]
name = "Sluicegate"
base_url = ${JSON.stringify(v1)}
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 2
stream_max_retries = 2

[agents]
enabled = false

[analytics]
enabled = false

[feedback]
enabled = false

[history]
persistence = "none"
${hostTools ? mcpServer(hostTools) : ""}`;

// Returns the host's tools as a server of MCP.
const mcpServer = (url) => `
[mcp_servers.${SERVER}]
url = ${JSON.stringify(url)}
tool_timeout_sec = ${TOOL_TIMEOUT_MS / 1000}
`;

// Returns behaviour files that Codex does not find itself: it reads AGENTS.md of the directory that it works in.
const unread = ({ behaviourFiles, project }) => behaviourFiles.filter((file) => project || !file.endsWith("/AGENTS.md"));

export default {
  name: "codex",
  // A namespace of the Responses API, and a name in it.
  hostToolName: (name) => `mcp__${SERVER}.${name}`,

  command(run) {
    return {
      program: `${run.agentRoot}/bin/codex`,
      args: ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never", "-"],
      stdin: run.prompt,
      files: { "codex/config.toml": configuration(run), "codex/AGENTS.md": joinBehaviour(unread(run)) },
      environment: { CODEX_HOME: `${run.state}/codex`, PATH: `${run.agentRoot}/codex-path:${run.env.PATH}` },
    };
  },

  translate: () => new Translator(),
};

class Translator {
  #answer = null;
  #error = null;

  line(line) {
    const object = parseLine(line);
    switch (object?.type) {
      case "item.started":
        return isTool(object.item) ? [toolCall(object.item)] : [];
      case "item.completed":
        return this.#completed(object.item);
      case "turn.completed": {
        const { input_tokens: input, output_tokens: output, cached_input_tokens: cached } = object.usage ?? {};
        return [events.usage(input, output, cached)];
      }
      case "turn.failed":
        this.#error = new AgentError("model_error", readMessage(object.error?.message));
        return [];
      default:
        return []; // `error` is also a notice about a retry: `turn.failed` follows the last
    }
  }

  end() {
    return { answer: this.#answer, error: this.#error };
  }

  #completed(item) {
    if (item.type === "agent_message") {
      this.#answer = item.text;
      return item.text === "" ? [] : [events.text(item.text)];
    }
    if (!isTool(item)) return [];
    // Codex does not announce every change of files.
    return item.type === "file_change" ? [toolCall(item), toolResult(item)] : [toolResult(item)];
  }
}

const TOOLS = new Set(["command_execution", "file_change", "mcp_tool_call", "web_search"]);

const isTool = (item) => TOOLS.has(item?.type) && !(item.type === "file_change" && item.status === "in_progress");

function toolCall(item) {
  const { command, changes, query, server, tool, arguments: args } = item;
  switch (item.type) {
    case "command_execution":
      return events.toolCall(item.id, "exec_command", { command });
    case "file_change":
      return events.toolCall(item.id, "apply_patch", { changes });
    case "web_search":
      return events.toolCall(item.id, "web_search", { query });
    default:
      return events.toolCall(item.id, `${server}.${tool}`, args);
  }
}

function toolResult(item) {
  const isError = item.status === "failed" || (item.exit_code ?? 0) !== 0;
  const output = item.aggregated_output ?? item.result ?? item.error?.message ?? item.status;
  return events.toolResult(item.id, output, isError);
}

// Returns the message in an error of the model API, which Codex passes on as JSON.
function readMessage(message = "the turn failed") {
  return parseLine(message)?.error?.message ?? message;
}
