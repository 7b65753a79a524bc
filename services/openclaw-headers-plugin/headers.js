// Which headers belong to which session, and what is a header at all. It knows nothing of OpenClaw.
//
// A refusal names the field and the rule, never the value: a value is a secret.
const SESSION = /^[\x21-\x7e]{1,256}$/;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const LONGEST = 8 * 1024; // bytes of a session's headers, names and values
const SESSIONS = 4096;

export const DEFAULT_HEADERS = ["x-run-token"];

// What a client may not say, in words for it.
export class Refused extends Error {}

const plain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function only(params, ...names) {
  if (!plain(params)) throw new Refused("params must be an object");
  const unknown = Object.keys(params).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Refused("params have an unknown property");
  if (typeof params.sessionId !== "string" || !SESSION.test(params.sessionId)) {
    throw new Refused("sessionId must be 1 to 256 printable characters without spaces");
  }
}

function checked(headers, allowed) {
  if (!plain(headers)) throw new Refused("headers must be an object");
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  if (entries.length === 0) throw new Refused("headers are empty: use clear");
  if (new Set(entries.map(([name]) => name)).size !== entries.length) throw new Refused("a header is there twice");
  for (const [name, value] of entries) {
    if (!allowed.includes(name)) throw new Refused("a header is not among those that this gateway is configured to send");
    if (typeof value !== "string" || !VALUE.test(value)) {
      throw new Refused(`the value of ${name} must be printable ASCII without spaces at its ends`);
    }
  }
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes >= LONGEST) throw new Refused(`headers have ${bytes} bytes, ${LONGEST - 1} are the most`);
  return Object.freeze(Object.fromEntries(entries));
}

export class Sessions {
  #headers = new Map();

  set(params, allowed) {
    only(params, "sessionId", "headers");
    const headers = checked(params.headers, allowed);
    if (!this.#headers.has(params.sessionId) && this.#headers.size >= SESSIONS) {
      throw new Refused(`${SESSIONS} sessions have headers already: clear those that have ended`);
    }
    this.#headers.set(params.sessionId, headers);
  }

  // Whether it had any.
  clear(params) {
    only(params, "sessionId");
    return this.#headers.delete(params.sessionId);
  }

  // None for a session without headers, so that its calls are refused as nobody's.
  of(sessionId) {
    return this.#headers.get(sessionId);
  }
}
