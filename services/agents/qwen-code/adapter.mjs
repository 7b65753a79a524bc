// Runs Qwen Code without a terminal, and reads its stream of JSON.
import { existsSync } from "node:fs";

import { joinBehaviour } from "../lib/behaviour.mjs";
import { AgentError } from "../lib/errors.mjs";
import * as events from "../lib/events.mjs";
import { SERVER, TOOL_TIMEOUT_MS } from "../lib/host_tools.mjs";
import { parseLine } from "../lib/run.mjs";

const MAX_RETRIES = 2;
const API_ERROR = /^\[API Error: ([\s\S]*)\]$/;

// Settings that keep Qwen Code to this run: no updates, no statistics, no memory beyond it. They are the system's, which have
// precedence over a project's.
function settings({ model, v1, hostTools, contextWindow: contextWindowSize, maxOutputTokens }) {
  const samplingParams = maxOutputTokens ? { max_tokens: maxOutputTokens } : {};
  return {
    general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
    ide: { enabled: false },
    ...(hostTools ? { mcpServers: { [SERVER]: { httpUrl: hostTools, trust: true, timeout: TOOL_TIMEOUT_MS } } } : {}),
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false, enableAutoSkill: false },
    model: { name: model, generationConfig: { maxRetries: MAX_RETRIES, contextWindowSize, samplingParams } },
    privacy: { usageStatisticsEnabled: false },
    security: { auth: { selectedType: "openai", apiKey: "sluicegate", baseUrl: v1 } },
    telemetry: { enabled: false },
    // A search would hide the host's tools until the model looks for them.
    tools: { approvalMode: "yolo", exclude: ["web_fetch", "web_search"], toolSearch: { enabled: !hostTools } },
  };
}

// Returns behaviour files that Qwen Code does not find itself: it looks for AGENTS.md up to the root of a repository.
function unread({ behaviourFiles, project }) {
  const isRepository = project !== null && existsSync(`${project}/.git`);
  return isRepository ? behaviourFiles : behaviourFiles.filter((file) => !file.endsWith("/AGENTS.md"));
}

export default {
  name: "qwen-code",
  hostToolName: (name) => `mcp__${SERVER}__${name}`,

  command(run) {
    const { model, v1, prompt, state, agentRoot } = run;
    const args = [`${agentRoot}/cli-entry.js`, "--output-format", "stream-json", "--include-partial-messages"];
    args.push("--yolo", "--auth-type", "openai", "--model", model);
    args.push("--openai-base-url", v1, "--openai-api-key", "sluicegate");
    return {
      program: process.execPath,
      args,
      stdin: prompt,
      files: {
        "settings.json": JSON.stringify(settings(run), null, 2),
        "home/.qwen/QWEN.md": joinBehaviour(unread(run)),
      },
      environment: {
        OPENAI_API_KEY: "sluicegate",
        OPENAI_BASE_URL: v1,
        OPENAI_MODEL: model,
        QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
        // The container is the sandbox.
        QWEN_SANDBOX: "false",
        QWEN_CODE_SYSTEM_SETTINGS_PATH: `${state}/settings.json`,
      },
    };
  },

  translate: () => new Translator(),
};

class Translator {
  #end = null;
  #isStreamed = false;

  line(line) {
    const object = parseLine(line);
    if (object === null) return [];
    if (object.type === "stream_event") return this.#piece(object.event);
    if (object.type === "assistant") return this.#assistant(object.message);
    if (object.type === "user") return toolResults(object.message);
    if (object.type === "result") return this.#result(object);
    return [];
  }

  end() {
    if (this.#end === null) return {};
    const { is_error: isError, subtype, result, error } = this.#end;
    if (subtype === "error_max_turns") return { error: new AgentError("turn_limit", "Qwen Code reached its limit of turns") };
    if (isError || subtype !== "success") return { error: failure(error?.message ?? result ?? subtype) };
    const failed = API_ERROR.exec(result ?? "");
    return failed ? { error: failure(result) } : { answer: result };
  }

  #piece(event) {
    if (event?.type !== "content_block_delta" || event.delta?.type !== "text_delta") return [];
    if (API_ERROR.test(event.delta.text)) return [];
    this.#isStreamed = true;
    return [events.text(event.delta.text)];
  }

  #assistant({ content = [] }) {
    const isStreamed = this.#isStreamed;
    this.#isStreamed = false;
    return content.flatMap((part) => {
      if (part.type === "tool_use") return [events.toolCall(part.id, part.name, part.input)];
      if (part.type === "text" && !isStreamed && !API_ERROR.test(part.text)) return [events.text(part.text)];
      return [];
    });
  }

  #result(object) {
    this.#end = object;
    const { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached } = object.usage ?? {};
    return [events.usage(input, output, cached)];
  }
}

// Returns the error of a failed run. Qwen Code has no code for an empty answer, only this text.
function failure(message) {
  const plain = API_ERROR.exec(message)?.[1] ?? message;
  return new AgentError(/ended with empty response/.test(plain) ? "no_answer" : "model_error", plain);
}

function toolResults({ content }) {
  if (!Array.isArray(content)) return [];
  const results = content.filter((part) => part.type === "tool_result");
  return results.map((part) => events.toolResult(part.tool_use_id, part.content, part.is_error));
}
