// Holds conversations with agents in the dashboard, through a relay that a case can cut.
import { connect, createServer } from "node:net";
import { api, input, suite, until, Visit } from "./driver.mjs";

const WHOLE = "one two three four five six";
const home = input.home;

// Passes connections of the dashboard on, until it is cut.
class Relay {
  sockets = new Set();
  isDown = false;

  static async start() {
    const relay = new Relay();
    const { hostname, port } = new URL(input.origin);
    const server = createServer((near) => {
      if (relay.isDown) return near.destroy();
      const far = connect(Number(port), hostname);
      for (const [one, other] of [[near, far], [far, near]]) {
        relay.sockets.add(one);
        one.pipe(other);
        one.on("error", () => undefined);
        one.on("close", () => { relay.sockets.delete(one); other.destroy(); });
      }
    });
    await new Promise((resolve) => server.listen(Number(new URL(home).port), "127.0.0.1", resolve));
    server.unref();
    return relay;
  }

  cut() {
    for (const socket of this.sockets) socket.destroy();
  }
}

const relay = await Relay.start();

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
const done = (visit) => visit.button("Regenerate").waitFor({ timeout: 40_000 });
const prose = async (visit) => (await visit.page.locator(".chat-answer .chat-prose").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
const posts = (visit) => visit.requests.filter((request) => request.startsWith("POST") && request.endsWith("/ai/chat")).length;

// The runs of a thread, the oldest first.
async function runs(name) {
  const { json } = await api("ann", "GET", "/runs?limit=100");
  return json.runs.filter((run) => run.stateKey === name).map(({ runId, state }) => [runId, state]).reverse();
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
    await until(look, (count) => count === 1, "the answer ends", 40_000);
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
    await visit.page.waitForTimeout(400);
    const streams = visit.answers.filter((answer) => answer.endsWith("/stream"));
    return { streams, ready: await visit.button("Send").count(), prose: await prose(visit), lost: await visit.page.locator(".chat-status").allInnerTexts() };
  },
  cut: async (browser) => {
    const visit = await open(browser);
    await ask(visit, "test:words", "Survive");
    await shows(visit, "one two");
    relay.isDown = true;
    relay.cut();
    await visit.says("The answer broke off");
    relay.isDown = false;
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
    await visit.page.waitForTimeout(300);
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
