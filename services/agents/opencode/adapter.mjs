// Runs `opencode run`, and reads its events.
import { projectFile } from "../lib/behaviour.mjs";
import { AgentError } from "../lib/errors.mjs";
import * as events from "../lib/events.mjs";
import { SERVER, TOOL_TIMEOUT_MS } from "../lib/host_tools.mjs";
import { parseLine } from "../lib/run.mjs";

const CONTEXT_WINDOW = 200_000;
const MAX_OUTPUT_TOKENS = 8192;
const PROJECT_FILES = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

// opencode's configuration: one provider, and nothing that needs a network.
function configuration(run) {
  const { model, v1, hostTools, contextWindow: context = CONTEXT_WINDOW, maxOutputTokens: output = MAX_OUTPUT_TOKENS } = run;
  const provider = {
    npm: "@ai-sdk/openai-compatible",
    name: "Sluicegate",
    options: { baseURL: v1, apiKey: "sluicegate" },
    models: { [model]: { name: model, limit: { context, output } } },
  };
  return {
    autoupdate: false,
    share: "disabled",
    snapshot: false,
    lsp: false,
    formatter: false,
    model: `sluicegate/${model}`,
    small_model: `sluicegate/${model}`,
    enabled_providers: ["sluicegate"],
    provider: { sluicegate: provider },
    instructions: [...run.behaviourFiles, ...projectFile(run, PROJECT_FILES)],
    ...(hostTools ? { mcp: { [SERVER]: { type: "remote", url: hostTools, oauth: false, timeout: TOOL_TIMEOUT_MS } } } : {}),
    permission: { edit: "allow", bash: "allow", external_directory: "allow", webfetch: "deny", websearch: "deny" },
  };
}

export default {
  name: "opencode",
  hostToolName: (name) => `${SERVER}_${name}`,

  command(run) {
    return {
      program: `${run.agentRoot}/bin/opencode`,
      // With a title, opencode does not ask the model for one.
      args: ["run", "--format", "json", "--pure", "--title", "run", "--model", `sluicegate/${run.model}`],
      stdin: run.prompt,
      files: { "opencode.json": JSON.stringify(configuration(run), null, 2) },
      environment: {
        OPENCODE_CONFIG: `${run.state}/opencode.json`,
        // A project's settings could name another endpoint or model. This leaves out its instructions, too.
        OPENCODE_DISABLE_PROJECT_CONFIG: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_SHARE: "1",
        OPENCODE_DISABLE_TERMINAL_TITLE: "1",
      },
    };
  },

  translate: () => new Translator(),
};

class Translator {
  // Text of the last message, part by part.
  #answer = null;
  #message = null;
  #error = null;

  line(line) {
    const object = parseLine(line);
    switch (object?.type) {
      case "text":
        return this.#text(object.part);
      case "tool_use":
        return toolEvents(object.part);
      case "step_finish": {
        const { input, output, reasoning = 0, cache = {} } = object.part.tokens ?? {};
        return [events.usage(input + (cache.read ?? 0) + (cache.write ?? 0), output + reasoning, cache.read)];
      }
      case "error":
        this.#error = new AgentError("model_error", readMessage(object.error));
        return [];
      default:
        return [];
    }
  }

  end() {
    return { answer: this.#answer, error: this.#error };
  }

  #text({ messageID, text }) {
    const isSame = this.#message === messageID;
    this.#answer = isSame ? `${this.#answer}\n${text}` : text;
    this.#message = messageID;
    return text === "" ? [] : [events.text(text)];
  }
}

// opencode reports a tool once it has ended.
function toolEvents({ callID, tool, state }) {
  const isError = state.status === "error";
  const output = isError ? state.error : state.output;
  return [events.toolCall(callID, tool, state.input), events.toolResult(callID, output, isError)];
}

function readMessage({ name, data } = {}) {
  return data?.message ?? name ?? "opencode failed";
}
