// Runs the image's agent once and prints its events, one JSON object a line (README.md lists them). The last line is the
// result or the error, and the exit code is 0 or 1.
//
// usage: node main.mjs
import adapter from "./adapter/adapter.mjs";
import * as events from "./lib/events.mjs";
import { runAgent } from "./lib/run.mjs";

const emit = (event) => process.stdout.write(`${events.toLine(event)}\n`);

try {
  emit(events.result(await runAgent(adapter, emit)));
} catch (error) {
  emit(events.error(error));
  process.exitCode = 1;
}
