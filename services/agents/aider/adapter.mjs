// Runs aider with one message. aider prints text for people, so its own log files give the answer and the usage.
import { existsSync, readFileSync } from "node:fs";

import { projectFile } from "../lib/behaviour.mjs";
import { AgentError } from "../lib/errors.mjs";
import * as events from "../lib/events.mjs";
import { parseLine } from "../lib/run.mjs";

const SWITCHES = ["--yes-always", "--no-pretty", "--no-fancy-input", "--no-check-update", "--no-show-release-notes"];
SWITCHES.push("--analytics-disable", "--no-show-model-warnings", "--no-detect-urls", "--no-suggest-shell-commands");
SWITCHES.push("--no-gitignore", "--no-auto-lint");
// aider looks for a newer list of models unless it has one of today.
const MODELS = "home/.aider/caches/model_prices_and_context_window.json";
const PROJECT_FILES = ["AGENTS.md", "CONVENTIONS.md"];

// Returns parameters of every call. They have precedence over a project's settings of models and its `.env`.
function callSettings({ model, v1 }) {
  const params = { model: `openai/${model}`, api_base: v1, api_key: "sluicegate" };
  return JSON.stringify([{ name: "aider/extra_params", extra_params: params }]);
}

// Returns what the model takes and gives. Without limits, aider uses its own for a model that it knows.
function modelMetadata({ model, contextWindow, maxOutputTokens }) {
  if (!contextWindow) return "{}";
  const limits = { max_input_tokens: contextWindow, max_output_tokens: maxOutputTokens, max_tokens: maxOutputTokens };
  return JSON.stringify({ [`openai/${model}`]: { ...limits, litellm_provider: "openai", mode: "chat" } });
}

export default {
  name: "aider",

  command(run) {
    const { model, v1, state, agentRoot, prompt } = run;
    const file = (option, name) => [`--${option}`, `${state}/${name}`];
    const name = `openai/${model}`;
    const args = ["--model", name, "--weak-model", name, "--editor-model", name, "--openai-api-base", v1];
    args.push(...file("message-file", "prompt.txt"), ...SWITCHES);
    args.push(...file("model-settings-file", "settings.json"), ...file("model-metadata-file", "models.json"));
    const read = [...run.behaviourFiles, ...projectFile(run, PROJECT_FILES)];
    args.push(...read.flatMap((path) => ["--read", path]));
    args.push(...file("input-history-file", "input"), ...file("chat-history-file", "chat.md"));
    args.push(...file("llm-history-file", "calls.txt"), ...file("analytics-log", "events.jsonl"));
    // Without a repository, aider would create one.
    if (!existsSync(".git")) args.push("--no-git");
    return {
      program: `${agentRoot}/bin/aider`,
      args,
      files: {
        "prompt.txt": prompt,
        "settings.json": callSettings(run),
        "models.json": modelMetadata(run),
        [MODELS]: '{"none": {}}',
      },
      environment: {
        OPENAI_API_KEY: "sluicegate",
        OPENAI_API_BASE: v1,
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
        PYTHONUNBUFFERED: "1",
        COLUMNS: "200",
      },
    };
  },

  translate: ({ state }) => new Translator(state),
};

class Translator {
  #state;
  #edits = 0;
  #reason = "aider's last call of the model failed";

  constructor(state) {
    this.#state = state;
  }

  line(line) {
    const edited = /^Applied edit to (.+)$/.exec(line);
    if (edited) {
      this.#edits += 1;
      const id = `edit-${this.#edits}`;
      return [events.toolCall(id, "edit", { path: edited[1] }), events.toolResult(id, "applied")];
    }
    // The reason may follow the piece of an answer that came before it.
    this.#reason = /litellm\.\w+Error: .*$/.exec(line)?.[0] ?? this.#reason;
    return [];
  }

  // Returns the events that aider does not print.
  last() {
    const used = this.#calls().filter(({ event }) => event === "message_send").map(({ properties }) => properties);
    const usage = used.map(({ prompt_tokens: input, completion_tokens: output }) => events.usage(input, output, 0));
    const { answer } = this.end();
    return answer ? [events.text(answer), ...usage] : usage;
  }

  // After a failed call, the log has the piece of an answer that came before the failure.
  end() {
    if (this.#calls().at(-1)?.event === "message_send_starting") return { error: new AgentError("model_error", this.#reason) };
    return { answer: readAnswer(readLog(`${this.#state}/calls.txt`)) };
  }

  // Returns the beginnings and ends of calls: aider logs an end only of a call that was whole.
  #calls() {
    const lines = readLog(`${this.#state}/events.jsonl`).split("\n").map(parseLine);
    return lines.filter((line) => /^message_send(_starting)?$/.test(line?.event));
  }
}

// Returns the last answer in aider's log of calls; empty if the last call has none.
function readAnswer(log) {
  const start = Math.max(log.lastIndexOf("LLM RESPONSE "), 0);
  const lines = log.slice(start).split("\n").filter((line) => /^ASSISTANT( |$)/.test(line));
  return lines.map((line) => line.slice("ASSISTANT ".length)).join("\n").trim();
}

function readLog(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
