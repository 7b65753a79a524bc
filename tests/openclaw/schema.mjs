// Reads OpenClaw's own schema of its protocol. For scripts that scripts/openclaw.sh runs.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { OPENCLAW_PACKAGE, OPENCLAW_PROTOCOL } = process.env;

if (!OPENCLAW_PROTOCOL) throw new Error("OPENCLAW_PROTOCOL is not set: run this with scripts/openclaw.sh node");

const { default: Ajv } = createRequire(`${OPENCLAW_PACKAGE}/package.json`)("ajv");
const schema = JSON.parse(readFileSync(`${OPENCLAW_PROTOCOL}/protocol.schema.json`, "utf8"));
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema(schema, "protocol");

// Returns the beginning of the names of a method's definitions: `exec.approval.resolve` has `ExecApprovalResolveParams`.
export const subject = (method) => method.replace(/(?:^|\.)(\w)/g, (_, letter) => letter.toUpperCase());

export const defines = (name) => name in schema.definitions;

// Validates a value against one definition of the schema.
export function errors(name, value) {
  if (!defines(name)) return [`the schema does not define ${name}`];
  const check = ajv.getSchema(`protocol#/definitions/${name}`);
  if (check(value)) return [];
  return check.errors.map(({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`);
}
