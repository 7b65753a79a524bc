// Holds conversations with agents in the dashboard, through a relay that a case can cut.
import { createRequire } from "node:module";
import { join } from "node:path";
import { api, ended, idle, input, order, Relay, running, state, suite, until, Visit } from "./driver.mjs";

const WHOLE = "one two three four five six";
const home = input.home;

const relay = await Relay.start(home);

async function ask(visit, agent, question) {
  await visit.go(`/chat?agent=${agent}`, "#question");
  await visit.page.waitForFunction((agent) => document.querySelector("select")?.value === agent, agent);
  await visit.page.fill("#question", question);
  await visit.page.keyboard.press("Enter");
}

const open = (browser) => Visit.as(browser, "ann", { home });
const answers = (visit) => visit.page.locator(".chat-answer").count();
const thread = (visit) => new URL(visit.page.url()).pathname.split("/")[2];
const shows = (visit, text) => visit.page.waitForFunction((text) => document.querySelector(".chat-log")?.innerText.replace(/\s+/g, " ").includes(text), text);
const done = (visit) => visit.button("Regenerate").waitFor();
const prose = async (visit) => (await visit.page.locator(".chat-answer .chat-prose").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
const posts = (visit) => visit.requests.filter((request) => request.startsWith("POST") && request.endsWith("/ai/chat")).length;

// Vercel's AI SDK by majors, and the packages that have them.
const CLIENTS = { 5: "ai-5", 6: "ai-6", 7: "ai" };

// Serves each major as a module of the page's own origin, as an application has it in its bundle.
async function serveClients(visit) {
  const packages = process.env.PACKAGES;
  const { build } = createRequire(join(packages, "package.json"))("esbuild");
  for (const [major, name] of Object.entries(CLIENTS)) {
    const source = { contents: `export { AbstractChat, DefaultChatTransport } from "${name}"`, resolveDir: packages };
    const { outputFiles } = await build({ stdin: source, bundle: true, format: "esm", platform: "browser", write: false, logLevel: "error" });
    const body = outputFiles[0].text;
    await visit.page.route(`${home}/assets/client-${major}.js`, (route) => route.fulfill({ contentType: "text/javascript", body }));
  }
}

// Asks with one major of the SDK, in the page. The cookie of the session goes with it.
async function askWith(major) {
  const { AbstractChat, DefaultChatTransport } = await import(`/assets/client-${major}.js`);
  const texts = new Set();
  const textOf = (message) => message.parts.filter(({ type }) => type === "text").map(({ text }) => text).join("");
  class State {
    status = "ready";
    error = undefined;
    messages = [];
    pushMessage = (message) => { this.messages = [...this.messages, message]; };
    popMessage = () => { this.messages = this.messages.slice(0, -1); };
    replaceMessage = (index, message) => {
      this.messages = this.messages.with(index, structuredClone(message));
      texts.add(textOf(message));
    };
    snapshot = (value) => structuredClone(value);
  }
  class Chat extends AbstractChat {}
  const transport = new DefaultChatTransport({ api: "/api/v1/ai/chat", body: { graphName: "test:words" } });
  const chat = new Chat({ id: `client-${major}`, transport, state: new State() });
  await chat.sendMessage({ text: "Count to six" });
  const [, answer] = chat.messages;
  return { status: chat.status, error: chat.error?.message ?? null, text: answer === undefined ? null : textOf(answer), texts: texts.size, metadata: answer?.metadata ?? null };
}

const CASES = {
  finish: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:words", "Count to six");
    const texts = new Set();
    const look = async () => {
      const [text = ""] = await prose(visit);
      if (text !== "") texts.add(text);
      return visit.button("Regenerate").count();
    };
    await until(look, (count) => count === 1, "the answer ends");
    return { texts: texts.size, prose: await prose(visit), answers: await answers(visit), posts: posts(visit), errors: await visit.page.locator(".error-note").count() };
  },
  stop: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:words", "Stop early");
    await shows(visit, "one two");
    const began = Date.now();
    await visit.button("Stop").click();
    await visit.page.locator(".chat-answer .chip-warn").waitFor();
    const took = Date.now() - began;
    const name = thread(visit);
    const { json } = await api("ann", "GET", `/threads/${name}`);
    return { took, text: await visit.text(), thread: json?.messages?.length ?? null, ready: await visit.button("Send").count() };
  },
  reload: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:words", "Go on");
    await shows(visit, "one two");
    await visit.page.reload();
    await shows(visit, "three");
    await done(visit);
    return { prose: await prose(visit), answers: await answers(visit), questions: await visit.page.locator(".chat-question").count(), posts: posts(visit) };
  },
  ready: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:sh", "Quick");
    await done(visit);
    visit.answers.length = 0;
    await visit.page.reload();
    await done(visit);
    await idle(visit.page, 400);
    const streams = visit.answers.filter((answer) => answer.endsWith("/stream"));
    return { streams, ready: await visit.button("Send").count(), prose: await prose(visit), lost: await visit.page.locator(".chat-status").allInnerTexts() };
  },
  cut: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:words", "Survive");
    await shows(visit, "one two");
    relay.cut();
    await visit.says("The answer broke off");
    relay.mend();
    await shows(visit, WHOLE);
    await done(visit);
    return { prose: await prose(visit), answers: await answers(visit), posts: posts(visit) };
  },
  double_click: async (browser) => {
    const visit = await open(browser);
    await visit.go("/chat?agent=test:sh", "#question");
    await visit.page.waitForSelector("select");
    await visit.page.fill("#question", "Only once");
    await visit.button("Send").dblclick({ noWaitAfter: true }).catch(() => undefined);
    await done(visit);
    const once = [posts(visit), await answers(visit)];
    await visit.button("Regenerate").click();
    await until(async () => posts(visit), (count) => count === once[0] + 1, "a new order");
    await done(visit);
    await idle(visit.page, 300);
    return { once, again: [posts(visit), await answers(visit)], questions: await visit.page.locator(".chat-question").count() };
  },
  absent_agent: async (browser) => {
    const visit = await open(browser);
    await visit.go("/chat", "select");
    const offered = await visit.page.locator("select option").evaluateAll((list) => list.map((option) => option.value));
    await visit.go("/agents", "table");
    const row = await visit.page.locator("tbody tr", { hasText: "test:missing" }).innerText();
    return { offered, row };
  },
  clients: async (browser) => {
    const visit = await open(browser);
    await serveClients(visit);
    const majors = Object.keys(CLIENTS);
    const seen = await Promise.all(majors.map((major) => visit.page.evaluate(askWith, major)));
    const states = await Promise.all(seen.map(({ metadata }) => state("ann", metadata?.runId)));
    return { seen: Object.fromEntries(majors.map((major, index) => [major, seen[index]])), states };
  },
  queue_full: async (browser) => {
    const held = ["full-1", "full-2", "full-3", "full-4", "full-5"];
    for (const [index, run] of held.entries()) {
      await order("low", run, "test:long");
      if (index < 2) await running("low", run);
    }
    const visit = await Visit.as(browser, "low", { home });
    await ask(visit, "test:sh", "One more");
    await visit.page.locator("[role=alert]").waitFor();
    const refused = await visit.page.locator("[role=alert]").innerText();
    for (const run of held.toReversed()) await api("low", "POST", `/runs/${run}/cancel`, {});
    for (const run of held) await ended("low", run);
    return { refused, answers: await answers(visit), posts: posts(visit) };
  },
  used_up: async (browser) => {
    const limited = await api("boss", "PUT", "/accounts/acct-low/limits", { totalTokens: 1 });
    const seen = {};
    for (const [who, agent, setting] of [["low", "test:model", "--total-tokens"], ["ann", "test:own", "total_tokens in"]]) {
      const visit = await Visit.as(browser, who, { home });
      await ask(visit, agent, "Ask your model");
      await done(visit);
      const help = visit.page.locator(".chat-answer .error-help", { hasText: setting });
      await help.waitFor({ timeout: 15_000 }).catch(() => undefined);
      seen[agent] = await visit.page.locator(".chat-answer .error-note").innerText();
    }
    return { limited: limited.status, seen };
  },
  busy: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:sh", "First");
    await done(visit);
    const message = { id: "by-hand", role: "user", parts: [{ type: "text", text: "By a program" }] };
    const other = api("ann", "POST", "/ai/chat", { id: thread(visit), trigger: "submit-message", message, graphName: "test:words" });
    await until(async () => (await api("ann", "GET", "/runs?limit=1")).json.runs[0].state, (state) => state !== "succeeded", "the other order");
    await visit.page.fill("#question", "Me too");
    await visit.page.keyboard.press("Enter");
    await visit.page.locator("[role=alert]").waitFor();
    const refused = await visit.page.locator("[role=alert]").innerText();
    await visit.button("Show that answer").click();
    await shows(visit, WHOLE);
    await other;
    return { refused, draft: await visit.page.inputValue("#question"), text: await visit.page.locator(".chat-log").innerText() };
  },
};

await suite(CASES);
