// The edge to OpenClaw: two methods by which a client says whose a session's model calls are, and the hook by which the
// headers reach them. All three are documented for plugins.
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { DEFAULT_HEADERS, Refused, Sessions } from "./headers.js";

// A process registers a plugin more than once, from more than one copy of this module; the sessions are one.
const sessions = (globalThis[Symbol.for("sluicegate-headers")] ??= new Sessions());

function answer(respond, work) {
  try {
    respond(true, { ok: true, ...work() }, undefined);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    respond(false, undefined, { code: "INVALID_REQUEST", message: error.message });
  }
}

export default definePluginEntry({
  id: "sluicegate-headers",
  name: "Sluicegate headers",
  description: "Gives each session's model calls the headers that say whose they are.",
  register(api) {
    const { provider = "sluicegate", headers = DEFAULT_HEADERS } = api.pluginConfig ?? {};
    // Who may talk to an agent may not thereby choose who pays.
    const scope = { scope: "operator.admin" };
    api.registerGatewayMethod(
      "sluicegate.headers.set",
      ({ params, respond }) => answer(respond, () => sessions.set(params, headers)),
      scope,
    );
    api.registerGatewayMethod(
      "sluicegate.headers.clear",
      ({ params, respond }) => answer(respond, () => ({ cleared: sessions.clear(params) })),
      scope,
    );
    api.registerProvider({
      id: provider,
      label: "Sluicegate",
      auth: [],
      resolveTransportTurnState: ({ sessionId }) => {
        const own = sessionId && sessions.of(sessionId);
        return own ? { headers: { ...own } } : undefined;
      },
    });
  },
});
