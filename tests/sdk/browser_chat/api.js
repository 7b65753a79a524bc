// Calls the HTTP API at the page's own origin. The browser adds the session's cookie, which no script can read.
const API = "/api/v1";

// Returns the answer. Whatever changes something says that it is JSON: no form of another page can do that.
async function call(method, path, headers = {}) {
  const response = await fetch(`${API}/${path}`, { method, headers: { "content-type": "application/json", ...headers } });
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
  return response;
}

// Returns the answer's JSON, or `absent` if the answer has this status.
async function read(path, status, absent) {
  try {
    return await (await call("GET", path)).json();
  } catch (error) {
    if (error.status === status) return absent;
    throw error;
  }
}

export const currentSession = () => read("session", 401, null);
export const signIn = (token) => call("POST", "session", { authorization: `Bearer ${token}` });
export const signOut = () => call("DELETE", "session");
export const storedMessages = async (thread) => (await read(`threads/${thread}`, 404, { messages: [] })).messages;
export const endRun = (thread) => call("POST", `ai/chat/${thread}/stop`);
export const CHAT = `${API}/ai/chat`;
