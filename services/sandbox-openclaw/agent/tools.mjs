// The tools that an agent of OpenClaw may have in a closed container, and what the agent is told about them. Performs no I/O.
import { AgentError } from "./message.mjs";

// The tools a coding agent needs there: commands and files.
export const TOOLS = ["exec", "process", "read", "write", "edit", "apply_patch"];

// Reads the id and the tools of the agent that runs from the text of SANDBOX_OPENCLAW_AGENT: `ID`, which has all tools, or
// `ID:TOOL,TOOL`, which has none if none is named.
export function parseAgent(text) {
  const [id, names, ...rest] = text.split(":");
  const refuse = (why) => { throw new AgentError("config_error", `SANDBOX_OPENCLAW_AGENT ${why}: ${text}`); };
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id) || rest.length > 0) refuse("is not an agent id of OpenClaw");
  const tools = names?.split(",").filter(Boolean) ?? TOOLS;
  const unknown = tools.filter((tool) => !TOOLS.includes(tool));
  if (unknown.length > 0) refuse(`names ${unknown.join(", ")}, and knows ${TOOLS.join(",")} alone`);
  return { agent: id, tools };
}

// Returns the tools that an agent with `tools` does not have.
export function deniedTools(tools) {
  return TOOLS.filter((tool) => !tools.includes(tool));
}

const list = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);

// Returns what an agent with `tools` can do below `workspace`.
function describeAbilities(tools, workspace) {
  const has = (...names) => names.some((name) => tools.includes(name));
  const verbs = [has("read") && "read", has("write") && "write", has("edit", "apply_patch") && "edit"].filter(Boolean);
  const abilities = [has("exec") && "run commands", verbs.length > 0 && `${list(verbs)} files below\n${workspace}`].filter(Boolean);
  return abilities.length > 0 ? `You can ${abilities.join(" and ")}.` : "You have no tools for commands and files.";
}

// Begins the instructions of each agent: what begins so is replaced by the instructions of the agent that runs now.
export const INSTRUCTIONS_START = "You are a coding agent in a closed container.";

// Builds the instructions of an agent with `tools`. `hostTools` is the address of the host's tools, if the run may call any:
// a program calls them, which an agent without commands cannot run.
export function buildInstructions({ tools, workspace, hostTools }) {
  const runs = tools.includes("exec");
  return `${INSTRUCTIONS_START} ${describeAbilities(tools, workspace)} There is no network: do not fetch, search, clone, or install from a registry; it will fail.
A repository, if there is one, is in ${workspace}/repo.${runs ? " Commit what you change there." : ""}
${runs && hostTools ? HOST_TOOLS : ""}`;
}

const HOST_TOOLS = `There are tools on the host, which act for you outside the container: \`cogni-tool list\` shows them, and
\`cogni-tool exec NAME '{"key": "value"}'\` calls one and prints its result as JSON.
`;
