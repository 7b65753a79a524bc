// Builds OpenClaw's configuration for a sandbox. Everything that OpenClaw starts by itself is off: the run's request
// decides what the run does and when it ends. Performs no I/O.

import { deniedTools, TOOLS } from "./tools.mjs";

const PROVIDER = "cogni";
// Longer than any run: the run's own timeout ends the run, and the proxy's timeouts end its calls.
const TIMEOUT_SECONDS = 24 * 3600;
// Name of the host's tools as a server of MCP. OpenClaw puts it before the name of each tool.
const HOST = "host";
const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

// OpenClaw reads the number of retries only from its session settings; the default is up to ten in 90 seconds. Two retries
// bridge a short interruption. The caller decides about more.
const SESSION_SETTINGS = { retry: { provider: { maxRetries: 2 } } };

export { SESSION_SETTINGS, TIMEOUT_SECONDS };

// Returns the part that an OpenClaw without `agent exec` accepts. That version refuses unknown keys and lists its agents. It
// has no client of MCP: there host tools are called with `cogni-tool`.
export function toOlderConfiguration({ agents, models, tools, session, mcp, ...rest }) {
  const { skills, embeddedAgent, ...defaults } = agents.defaults;
  const list = Object.entries(agents.entries).map(([id, entry]) => ({ id, ...entry }));
  const providers = Object.entries(models.providers).map(([name, { timeoutSeconds, ...provider }]) => [name, provider]);
  const { toolSearch, allow, deny, ...others } = tools;
  // It has no tools but these: with none of them, a list of allowed ones would fail.
  const denied = Object.values(agents.entries).flatMap((entry) => entry.tools?.deny ?? []);
  const known = { ...(deniedTools(denied).length > 0 ? { allow: TOOLS } : { deny: ["*"] }), ...others };
  const { mode } = models;
  return { ...rest, agents: { defaults, list }, models: { mode, providers: Object.fromEntries(providers) }, tools: known };
}

// Returns the part of the configuration about tools: at most TOOLS, and those of the host at `url` if there are any. An agent
// without `own` tools may have none at all, and then OpenClaw fails with any list of allowed tools.
function toolConfiguration(url, own) {
  const rest = {
    elevated: { enabled: false },
    toolSearch: false, // few tools need no search
  };
  if (!url) return { tools: { ...(own.length > 0 ? { allow: TOOLS } : { deny: ["*"] }), ...rest } };
  return {
    tools: { allow: [...TOOLS, `${HOST}__*`], ...rest },
    mcp: { servers: { [HOST]: { url, transport: "streamable-http" } } },
  };
}

// Returns the entry of the one agent. It denies what the agent may not use of TOOLS, because OpenClaw takes an empty list of
// allowed tools for all tools, and `write` in one for `apply_patch`, too.
function agentEntry(workspace, tools) {
  const deny = deniedTools(tools);
  return deny.length > 0 ? { workspace, tools: { deny } } : { workspace };
}

// Builds the configuration of one agent, called `agent`, which has those `tools`; all if absent. `base` may end in `/v1`;
// `contextWindow` and `maxTokens` are in tokens. `hostTools` is the address of the host's tools, if the run may call any.
export function buildConfiguration({ base, model, agent, tools = TOOLS, workspace, contextWindow, maxTokens, hostTools }) {
  const baseUrl = `${base.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
  return {
    agents: {
      defaults: {
        workspace,
        model: { primary: `${PROVIDER}/${model}` },
        sandbox: { mode: "off" }, // the container is the sandbox
        heartbeat: { every: "0m" },
        timeoutSeconds: TIMEOUT_SECONDS,
        skipBootstrap: true,
        embeddedAgent: { projectSettingsPolicy: "ignore" }, // ignore settings of a repository
        skills: [], // most skills need a network
      },
      entries: { [agent]: agentEntry(workspace, tools) },
    },
    models: {
      mode: "replace", // removes every built-in provider
      catalogRefresh: { enabled: false },
      providers: {
        [PROVIDER]: {
          baseUrl,
          apiKey: "none", // OpenClaw requires a key; the proxy holds the real one
          api: "openai-completions",
          timeoutSeconds: TIMEOUT_SECONDS,
          models: [
            { id: model, name: model, reasoning: false, input: ["text"], cost: FREE, contextWindow, maxTokens },
          ],
        },
      },
    },
    ...toolConfiguration(hostTools, tools),
    plugins: { enabled: false, allow: [] },
    cron: { enabled: false },
    // Skips maintenance of old sessions, whose threads load half of OpenClaw again. The only session is new.
    session: { maintenance: { mode: "warn" } },
    gateway: { mode: "local", controlUi: { enabled: false } },
    update: { checkOnStart: false },
  };
}
