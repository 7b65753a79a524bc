// Drives the dashboard in Chromium: visits with watchers, the API as programs use it, and pages of other origins. A suite is
// a list of cases; it prints one JSON line per case with what was observed, and `brokeOff` if a case broke off.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createRelay } from "node:net";
import { join } from "node:path";
import { launch } from "../browser_tab.mjs";

export const input = JSON.parse(process.env.INPUT);
export const { origin, tokens } = input;
const PATIENCE = 60_000;

// Runs the cases in one Chromium; only those that `input.only` names, if a person looks at some.
export async function suite(cases, switches = []) {
  const browser = await launch(switches);
  for (const [name, run] of Object.entries(cases)) {
    if (input.only?.includes(name) === false) continue;
    const began = Date.now();
    let observed;
    try {
      observed = await run(browser);
    } catch (error) {
      observed = { brokeOff: String(error.stack).slice(0, 1500), shown: await shown(browser) };
    }
    for (const context of browser.contexts()) await context.close();
    console.log(JSON.stringify({ case: name, ms: Date.now() - began, ...observed }));
  }
  await browser.close();
}

// Texts of the open pages, for those who look why a case broke off.
function shown(browser) {
  const pages = browser.contexts().flatMap((context) => context.pages());
  return Promise.all(pages.map((page) => page.evaluate(() => `${location.href} ${document.body.innerText.slice(0, 1500)}`).catch(String)));
}

// A context with one page, and what happened in it.
export class Visit {
  violations = [];
  errors = [];
  crashes = [];
  foreign = [];
  requests = [];
  answers = [];

  static async open(browser, options = {}) {
    const visit = new Visit();
    const { home = origin, ...context } = options;
    visit.home = home;
    visit.context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...context });
    await visit.context.exposeFunction("reportViolation", (text) => visit.violations.push(text));
    await visit.context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    visit.context.on("page", (page) => visit.watch(page));
    visit.page = await visit.context.newPage();
    return visit;
  }

  // Opens a visit, and signs in.
  static async as(browser, who, options = {}) {
    const visit = await Visit.open(browser, options);
    await visit.signIn(tokens[who]);
    return visit;
  }

  watch(page) {
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => this.crashes.push(String(error)));
    page.on("console", (message) => this.errors.push(`${message.type()}: ${message.text()}`));
    page.on("request", (request) => {
      const url = request.url();
      this.requests.push(`${request.method()} ${url}`);
      if (/^https?:/.test(url) && !url.startsWith(`${this.home}/`)) this.foreign.push(url);
    });
    page.on("response", (answer) => this.answers.push(`${answer.status()} ${answer.request().method()} ${new URL(answer.url()).pathname}`));
  }

  async signIn(token) {
    await this.page.goto(`${this.home}/signin`);
    await this.page.fill("#token", token);
    await this.page.keyboard.press("Enter");
    await this.page.waitForSelector(".frame");
  }

  // Opens a page of the dashboard, and waits until it shows its content.
  async go(path, selector = "#main h1") {
    await this.page.goto(this.home + path);
    await this.page.waitForSelector(selector);
    // Grey rows come after 300 ms; before, the page waits without them.
    await this.page.waitForSelector(".skeleton, .skeleton-wait", { state: "detached" });
  }

  // Waits until the page shows this text.
  says = (text) => this.page.waitForFunction((text) => document.body.innerText.includes(text), text);
  text = () => this.page.evaluate(() => document.body.innerText);
  button = (name) => this.page.getByRole("button", { name, exact: true });
}

// The API as a program with the token of `who` uses it.
export async function api(who, method, path, body) {
  const answer = await fetch(`${origin}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${tokens[who]}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Streams and empty answers are not JSON.
  }
  return { status: answer.status, json, text };
}

// Orders a run with this id.
export async function order(who, run, agentId, more = {}) {
  const { status, text } = await api(who, "PUT", `/runs/${run}`, { agentId, input: "Why is the sky blue?", ...more });
  if (status !== 201) throw new Error(`${run}: ${status} ${text}`);
}

// Waits until `look` returns something that `isThere` accepts, and returns it.
export async function until(look, isThere, what, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const seen = await look();
    if (isThere(seen)) return seen;
    if (Date.now() > end) throw new Error(`${what}: ${JSON.stringify(seen)?.slice(0, 500)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Waits until a page has shown the same for `quiet` milliseconds: what would change it has come, if it comes at all.
export function idle(page, quiet = 200) {
  const settle = ([quiet, patience]) =>
    new Promise((resolve, reject) => {
      const done = () => (observer.disconnect(), resolve());
      let timer = setTimeout(done, quiet);
      const changed = () => (clearTimeout(timer), (timer = setTimeout(done, quiet)));
      const observer = new MutationObserver(changed);
      observer.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
      setTimeout(() => reject(new Error("the page still changes")), patience);
    });
  return page.evaluate(settle, [quiet, PATIENCE]);
}

const ENDS = ["succeeded", "failed", "cancelled", "timed_out"];
export const state = async (who, run) => (await api(who, "GET", `/runs/${run}`)).json.state;
export const ended = (who, run) => until(() => state(who, run), (now) => ENDS.includes(now), `${run} ends`);
export const running = (who, run) => until(() => state(who, run), (now) => now === "running", `${run} runs`);

// Serves pages of another origin, none of which has a defence: `pages` has their texts, by path.
export async function elsewhere(pages) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    const text = pages[new URL(request.url, "http://x").pathname];
    response.writeHead(text === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" });
    response.end(text ?? "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const { port } = server.address();
  return { asked, port, origin: `http://127.0.0.1:${port}` };
}

// Passes connections of the dashboard on from another address, until it is cut.
export class Relay {
  sockets = new Set();
  isDown = false;

  static async start(home) {
    const relay = new Relay();
    const { hostname, port } = new URL(origin);
    const server = createRelay((near) => {
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

  // Ends all connections, and takes none until it is mended.
  cut() {
    this.isDown = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isDown = false;
  }
}

// Answers each request for JSON as the description of the API allows it, with all fields there are: every list has one row,
// and every text is `text`. Other answers stay.
export async function fabricate(visit, text) {
  const { paths, components } = (await api("boss", "GET", "/openapi.json")).json;
  const patterns = Object.entries(paths).map(([path, { get }]) => {
    const schema = get?.responses[200]?.content?.["application/json"]?.schema;
    return { pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`), schema };
  });
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  const value = (schema, name) => {
    if (schema.$ref !== undefined) return value(components.schemas[schema.$ref.split("/").pop()], name);
    const choices = schema.oneOf ?? schema.anyOf;
    if (choices !== undefined) return value(choices.find(({ type }) => type !== "null"), name);
    if (schema.allOf !== undefined) return Object.assign({}, ...schema.allOf.map((part) => value(part, name)));
    if (schema.enum !== undefined) return schema.enum.includes("failed") ? "failed" : schema.enum[0];
    const type = [schema.type].flat().find((type) => type !== "null");
    if (type === "array") return [value(schema.items ?? {}, name)];
    if (type === "integer" || type === "number") return 1;
    if (type === "boolean") return true;
    if (type === "object" || schema.properties !== undefined) return object(schema);
    if (schema.format === "date-time") return soon;
    if (name === "state") return "waiting";
    return name === "nextCursor" ? null : text;
  };
  const object = ({ properties = {}, additionalProperties: more }) => {
    const fields = Object.entries(properties).map(([name, schema]) => [name, value(schema, name)]);
    if (typeof more === "object") fields.push([text, value(more, "")]);
    return Object.fromEntries(fields);
  };
  const serve = async (route) => {
    const { pathname } = new URL(route.request().url());
    const { schema } = patterns.find(({ pattern }) => pattern.test(pathname)) ?? {};
    if (route.request().method() !== "GET" || schema === undefined || /\/(session|dashboard)$/.test(pathname)) return route.continue();
    return route.fulfill({ status: 200, json: value(schema, "") });
  };
  await visit.page.route("**/api/v1/**", (route) => serve(route).catch(() => undefined));
}

// Returns what in the document a hostile text could have made: code that ran, elements, addresses, characters.
export function audit(page) {
  return page.evaluate(() => {
    const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udbff](?![\udc00-\udfff])|\p{M}{6}/u;
    const found = [];
    const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    while (walk.nextNode()) {
      const node = walk.currentNode;
      if (node.nodeType === Node.TEXT_NODE && odd.test(node.data)) found.push(`text ${node.data.slice(0, 60)}`);
      for (const { name, value } of node.attributes ?? []) {
        if (name.startsWith("on") || (name !== "data-approval" && name !== "value" && odd.test(value))) found.push(`${node.tagName} ${name}`);
      }
    }
    const links = [...document.querySelectorAll("a")].map((link) => link.href);
    return {
      ran: window.ran ?? null,
      polluted: {}.polluted ?? null,
      elements: document.querySelectorAll("#root :is(script, img, iframe, object, embed, base, meta, style, link, svg[onload])").length,
      links: links.filter((href) => !/^https?:/.test(href)),
      odd: found.slice(0, 5),
      nodes: document.querySelectorAll("*").length,
      wide: document.documentElement.scrollWidth > window.innerWidth,
      title: document.title,
    };
  });
}

// Breaches of the rules of axe in the document. The policy of the page does not hold for what the driver runs.
export async function breaches(page) {
  const source = readFileSync(join(process.env.PACKAGES, "node_modules/axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  return page.evaluate(async () => {
    const { violations, passes } = await window.axe.run(document, { resultTypes: ["violations"] });
    const shown = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`)}`);
    return { shown, passes: passes.length };
  });
}

// Presses Tab until the control with this name has the focus.
export async function tabTo(page, name) {
  for (let presses = 0; presses < 60; presses += 1) {
    const focused = await page.evaluate(() => {
      const { activeElement: element } = document;
      return (element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? "").trim();
    });
    if (focused === name) return presses;
    await page.keyboard.press("Tab");
  }
  throw new Error(`no ${name} by Tab`);
}
