// Validates a client's frames against OpenClaw's own schema of its protocol.
//
// usage: scripts/openclaw.sh node tests/openclaw/validate.mjs <FRAMES
//
// Reads one frame a line and prints one line for each, in the same order: `[]`, or a list of errors. Checks a request as a
// frame and by its method's parameters. A method that the schema does not define, such as a plugin's, is an error.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { OPENCLAW_PACKAGE, OPENCLAW_PROTOCOL } = process.env;

if (!OPENCLAW_PROTOCOL) throw new Error("OPENCLAW_PROTOCOL is not set: run this with scripts/openclaw.sh node");

const { default: Ajv } = createRequire(`${OPENCLAW_PACKAGE}/package.json`)("ajv");
const schema = JSON.parse(readFileSync(`${OPENCLAW_PROTOCOL}/protocol.schema.json`, "utf8"));
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema(schema, "protocol");

// Returns the name of a method's parameters: `exec.approval.resolve` has `ExecApprovalResolveParams`.
const definition = (method) =>
  `${method.replace(/(?:^|\.)(\w)/g, (_, letter) => letter.toUpperCase())}Params`;

// Validates a value against one definition of the schema.
function errors(name, value) {
  if (!schema.definitions[name]) return [`the schema does not define ${name}`];
  const check = ajv.getSchema(`protocol#/definitions/${name}`);
  if (check(value)) return [];
  return check.errors.map(({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const frame = JSON.parse(line);
  const found = errors("RequestFrame", frame);
  console.log(JSON.stringify([...found, ...errors(definition(frame.method ?? ""), frame.params ?? {})]));
}
