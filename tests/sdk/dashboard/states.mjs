// Leads pages of the dashboard into states that they are in for a while, or only with what rare runs have.
import { fabricate, origin } from "./driver.mjs";

// Pages that have rows only if a run called a model or a tool of the host, or if a gateway runs.
const FILLED = [
  ...["calls", "tools", "refusals", "receipts", "git"].map((tab) => `/sandbox/failed?tab=${tab}`),
  "/accounts/acct-7?tab=statement", "/accounts/acct-7?tab=receipts", "/approvals",
  ...["sessions", "files"].map((tab) => `/gateways/coding/main?tab=${tab}`),
];

// Asks an agent in the chat, and waits until its answer has `text`.
export async function asks(visit, agent, text) {
  await visit.go(`/chat?agent=${agent}`, "#question");
  await visit.page.waitForFunction((agent) => document.querySelector("select")?.value === agent, agent);
  await visit.page.fill("#question", "Count to six");
  await visit.page.keyboard.press("Enter");
  await visit.page.locator(".chat-answer", { hasText: text }).waitFor();
}

// What a server says that has no time or no store, and what a client says of one that is away.
const refuse = (visit, path, status, code) =>
  visit.page.route(path, (route) => route.fulfill({ status, contentType: "application/problem+json", body: JSON.stringify({ status, code, detail: "The store does not answer.", help: "start it" }) }));

// Events of a run of which some are not there any more.
const GAPS = [{ type: "pruned", count: 7 }, { type: "log_cut", stream: "stderr", bytes: 9000 }, { type: "missed", count: 3 }, { type: "done" }]
  .map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify({ seq: index + 1, at: "2026-01-01T00:00:00Z", ...event })}\n\n`).join("");

// States that pages are in for a while. Each leads there, and waits until the page says so.
const STATES = {
  cancel: async (visit) => {
    await visit.go("/sandbox/shown");
    await visit.button("Cancel …").click();
    await visit.page.waitForSelector("dialog[open]");
  },
  keys: async (visit) => {
    await visit.go("/sandbox/shown");
    await visit.page.keyboard.press("?");
    await visit.page.waitForSelector("dialog[open]");
  },
  typed: async (visit) => {
    await visit.go("/accounts/acct-8");
    await visit.button("Freeze").click();
    await visit.page.waitForSelector("dialog[open] input");
  },
  streaming: (visit) => asks(visit, "test:words", "two"),
  empty: async (visit) => {
    await visit.go("/sandbox?state=timed_out", ".empty");
    await visit.says("No run matches");
  },
  gaps: async (visit) => {
    await visit.page.route("**/api/v1/runs/failed/events*", (route) => route.fulfill({ contentType: "text/event-stream", body: GAPS }));
    await visit.go("/sandbox/failed?tab=events", ".event-end");
  },
  cut: async (visit) => {
    await visit.page.route("**/api/v1/runs/failed/events*", (route) => route.fulfill({ contentType: "text/event-stream", body: GAPS }));
    await visit.go("/sandbox/failed?tab=output", ".cut");
  },
  stale: async (visit) => {
    await visit.go("/approvals");
    await refuse(visit, "**/api/v1/approvals*", 503, "store_unavailable");
    await visit.says("not newer than");
  },
  forbidden: async (visit) => {
    await refuse(visit, "**/api/v1/accounts", 403, "forbidden");
    await visit.page.goto(`${origin}/accounts`);
    await visit.says("Your role does not allow this");
  },
  skeleton: async (visit) => {
    await visit.page.route("**/api/v1/accounts", () => undefined);
    await visit.page.goto(`${origin}/accounts`);
    await visit.page.waitForSelector(".skeleton");
  },
  unreachable: async (visit) => {
    await visit.page.route("**/api/v1/session", (route) => route.abort());
    await visit.page.goto(`${origin}/sandbox`);
    await visit.says("Sluicegate does not answer");
  },
};

// Leads a page into each state in turn, and has `look` look at it, in one or two schemes of colours. The run
// `failed` has ended, and `shown` still runs.
export async function walkStates(visit, look) {
  for (const [name, lead] of Object.entries(STATES)) {
    await lead(visit);
    await look(name, ["light", "dark"]);
    await visit.page.unrouteAll({ behavior: "ignoreErrors" });
  }
  await fabricate(visit, "a word");
  for (const path of FILLED) {
    await visit.go(path);
    await look(path, ["dark"]);
  }
}
