// What OpenClaw is told in a sandbox. Everything that it would do of its own accord is off: what a run does, and when it
// ends, is decided by whoever ordered it. Pure.

const PROVIDER = "cogni";
// What a coding agent needs of a closed container: commands and files.
const TOOLS = ["exec", "process", "read", "write", "edit", "apply_patch"];
// Longer than any run: its own limit of time ends it, and the proxy's limits end its calls.
const NEVER = 24 * 3600; // seconds
const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

// Beside that OpenClaw reads settings of its sessions, and only there how often it asks a model again that is busy, or broke
// off: up to ten times in 90 seconds if they do not say. Two are enough for a hiccup; who ordered the run decides about more.
const SETTINGS = { retry: { provider: { maxRetries: 2 } } };

export { NEVER, SETTINGS };

// What of it an OpenClaw without `agent exec` knows: it refuses the rest, and has agents in a list.
export function older({ agents, models, tools, session, ...rest }) {
  const { skills, embeddedAgent, ...defaults } = agents.defaults;
  const list = Object.entries(agents.entries).map(([id, entry]) => ({ id, ...entry }));
  const providers = Object.entries(models.providers).map(([name, { timeoutSeconds, ...provider }]) => [name, provider]);
  const { toolSearch, ...known } = tools;
  const { mode } = models;
  return { ...rest, agents: { defaults, list }, models: { mode, providers: Object.fromEntries(providers) }, tools: known };
}

// `base` with or without `/v1`; `contextWindow` and `maxTokens` in tokens.
export function configuration({ base, model, workspace, contextWindow, maxTokens }) {
  const baseUrl = `${base.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
  return {
    agents: {
      defaults: {
        workspace,
        model: { primary: `${PROVIDER}/${model}` },
        sandbox: { mode: "off" }, // the container is one
        heartbeat: { every: "0m" },
        timeoutSeconds: NEVER,
        skipBootstrap: true,
        embeddedAgent: { projectSettingsPolicy: "ignore" }, // a repository's settings are not ours
        skills: [], // most of them want a network
      },
      entries: { main: { workspace } },
    },
    models: {
      mode: "replace", // no provider but ours, whatever else OpenClaw knows
      catalogRefresh: { enabled: false },
      providers: {
        [PROVIDER]: {
          baseUrl,
          apiKey: "none", // OpenClaw insists on one; the proxy has the key
          api: "openai-completions",
          timeoutSeconds: NEVER,
          models: [
            { id: model, name: model, reasoning: false, input: ["text"], cost: FREE, contextWindow, maxTokens },
          ],
        },
      },
    },
    tools: {
      allow: TOOLS,
      elevated: { enabled: false },
      toolSearch: false, // six tools need no catalogue of tools
    },
    plugins: { enabled: false, allow: [] },
    cron: { enabled: false },
    // It looks after old sessions first otherwise, in threads that load half of OpenClaw again; there is one, and it is new.
    session: { maintenance: { mode: "warn" } },
    gateway: { mode: "local", controlUi: { enabled: false } },
    update: { checkOnStart: false },
  };
}
