// Whether frames that a client sends are what OpenClaw's own schema of its protocol says.
//
// usage: scripts/openclaw.sh node tests/openclaw/validate.mjs <FRAMES
//
// One frame a line in, one line out, in the same order: `[]`, or what is wrong. A request is checked twice, as a frame and
// by its method's own parameters; methods without any in the schema (those of plugins) are wrong.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { OPENCLAW_PACKAGE, OPENCLAW_PROTOCOL } = process.env;

if (!OPENCLAW_PROTOCOL) throw new Error("OPENCLAW_PROTOCOL is not set: run this with scripts/openclaw.sh node");

const { default: Ajv } = createRequire(`${OPENCLAW_PACKAGE}/package.json`)("ajv");
const schema = JSON.parse(readFileSync(`${OPENCLAW_PROTOCOL}/protocol.schema.json`, "utf8"));
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema(schema, "protocol");

// `exec.approval.resolve` has `ExecApprovalResolveParams`.
const definition = (method) =>
  `${method.replace(/(?:^|\.)(\w)/g, (_, letter) => letter.toUpperCase())}Params`;

function errors(name, value) {
  if (!schema.definitions[name]) return [`there is no ${name}`];
  const check = ajv.getSchema(`protocol#/definitions/${name}`);
  if (check(value)) return [];
  return check.errors.map(({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const frame = JSON.parse(line);
  const wrong = errors("RequestFrame", frame);
  console.log(JSON.stringify([...wrong, ...errors(definition(frame.method ?? ""), frame.params ?? {})]));
}
