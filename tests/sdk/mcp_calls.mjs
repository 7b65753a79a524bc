// Calls host tools with the official TypeScript client of MCP.
//
// usage: mcp_calls.mjs URL TOOL ARGUMENTS DENIED   Prints one JSON object: what the server is, lists and answers.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const from = createRequire(`${process.env.PACKAGES}/package.json`);
const load = (path) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load('client/index.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');

const [url, tool, args, denied] = process.argv.slice(2);
const client = new Client({ name: 'host-tools-test', version: '1' });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);

async function call(name, callArguments) {
  try {
    const result = await client.callTool({ name, arguments: callArguments });
    return { failed: Boolean(result.isError), text: result.content.map((block) => block.text ?? '').join('') };
  } catch (error) {
    return { error: String(error) };
  }
}

const { tools } = await client.listTools();
console.log(JSON.stringify({
  protocol: transport.protocolVersion,
  tools: tools.map(({ name }) => name).sort(),
  called: await call(tool, JSON.parse(args)),
  invalid: await call(tool, { no_such_argument: 1 }),
  denied: await call(denied, {}),
}));
await client.close();
