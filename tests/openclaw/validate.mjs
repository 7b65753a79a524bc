// Validates a client's frames against OpenClaw's own schema of its protocol.
//
// usage: scripts/openclaw.sh node tests/openclaw/validate.mjs <FRAMES
//
// Reads one frame a line and prints one line for each, in the same order: `[]`, or a list of errors. Checks a request as a
// frame and by its method's parameters. A method that the schema does not define, such as a plugin's, is an error.
import { createInterface } from "node:readline";

import { errors, subject } from "./schema.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const frame = JSON.parse(line);
  const found = errors("RequestFrame", frame);
  console.log(JSON.stringify([...found, ...errors(`${subject(frame.method ?? "")}Params`, frame.params ?? {})]));
}
