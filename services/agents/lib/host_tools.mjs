// Describes the host's tools, which act for the agent outside its container: their server, and a text about each.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

// Name of the server of MCP in each agent's configuration.
export const SERVER = "host";
// Longer than any wait for an approval: the gateway ends a call first.
export const TOOL_TIMEOUT_MS = 15 * 60 * 1000;
const LIST_TIMEOUT_MS = 20_000;
const MAX_LIST_BYTES = 4 << 20;
// A longer schema is left to `cogni-tool list --json`: the text is part of every call of the model.
const MAX_SCHEMA_LENGTH = 4096;

// Returns the address of the tools' server and the tools of the run; null if it may call none. Without a list, the names remain.
export async function readHostTools({ COGNI_HOST_TOOLS: granted, COGNI_GATEWAY_URL: gateway }, root) {
  if (!granted) return null;
  const url = `${gateway ?? root}/mcp`;
  try {
    const options = { timeout: LIST_TIMEOUT_MS, maxBuffer: MAX_LIST_BYTES };
    const { stdout } = await promisify(execFile)("cogni-tool", ["list", "--json"], options);
    return { url, tools: JSON.parse(stdout) };
  } catch (error) {
    process.stderr.write(`cogni-tool list: ${error.stderr || error.message}\n`);
    return { url, tools: granted.split(",").map((name) => ({ name })) };
  }
}

// Returns the text for an agent that calls a tool as `nameOf` says; for one without MCP, which has only its shell, without it.
export function describe(tools, nameOf) {
  return [INTRODUCTION, nameOf ? OVER_MCP : [], IN_A_SHELL, ...tools.map((tool) => describeTool(tool, nameOf))].flat().join("\n");
}

const INTRODUCTION = "Some tools run on the host, outside this container, and act for you there.";
const OVER_MCP = `They are the tools of the MCP server \`${SERVER}\`. Call them as you call your own, by the names below.`;
const IN_A_SHELL = `In a shell, \`cogni-tool exec NAME '{"key": "value"}'\` calls one and prints its result as JSON. Exit code 3 means that
you may not call it, and 4 that tools cannot be called at present. \`cogni-tool list --json\` shows the JSON Schema of all.`;

function describeTool({ name, description = "", inputSchema }, nameOf) {
  const lines = ["", `## ${nameOf?.(name) ?? name}`, ""];
  if (description) lines.push(description.trim(), "");
  const schema = JSON.stringify(inputSchema);
  if (schema && schema.length <= MAX_SCHEMA_LENGTH) lines.push(`Arguments, as JSON Schema: \`${schema}\``, "");
  const example = JSON.stringify(exampleOf(inputSchema ?? {}));
  lines.push(`Example in a shell: \`cogni-tool exec ${name} '${example.replaceAll("'", "'\\''")}'\``);
  return lines;
}

// Returns a value that `schema` describes, with required members alone.
function exampleOf({ type, properties = {}, required = [], items, examples, minimum, ...schema }) {
  const given = [schema.const, schema.default, examples?.[0], schema.enum?.[0]].find((value) => value !== undefined);
  if (given !== undefined) return given;
  switch (Array.isArray(type) ? type[0] : type) {
    case "string":
      return "text";
    case "integer":
    case "number":
      return minimum ?? 1;
    case "boolean":
      return true;
    case "array":
      return items ? [exampleOf(items)] : [];
    default:
      return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? { type: "string" })]));
  }
}
