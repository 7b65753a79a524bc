// Chats with agents of `sluice up` in Chromium, through a page with `useChat` that has a browser session. Prints one JSON
// line per case, with what the page shows. tests/clients/browser.rs compares it with the thread.
//
// ORIGIN serves the page from FOLDER, and passes the API on; so does OTHER, which the API's origins do not have.
//
// usage: TOKEN=... scripts/browser.sh node tests/sdk/browser_chat.mjs FOLDER ORIGIN OTHER
import { bundle, launch, Tab } from "./browser_tab.mjs";

const [folder, origin, other] = process.argv.slice(2);
const token = process.env.TOKEN;

// Orders runs in threads of `name`, by each request that a page can send to another origin. Returns what each led to.
async function order([target, name]) {
  const ask = (path, options) =>
    fetch(`${target}/api/v1/${path}`, { credentials: "include", ...options })
      .then((response) => response.text().then(() => response.status), (error) => error.name);
  const send = (way, mode, type) => {
    const body = JSON.stringify({ message: "one", graphName: "test:sh", stateKey: `${name}-${way}` });
    return ask("ai/chat", { method: "POST", mode, headers: { "content-type": type }, body });
  };
  return {
    json: await send("json", "cors", "application/json"),
    text: await send("text", "cors", "text/plain"),
    form: await send("form", "no-cors", "text/plain"),
    read: await ask("session", { mode: "cors" }),
  };
}

// Returns what a script of the page could read that must stay secret.
function readable(token) {
  const stored = [localStorage, sessionStorage].map((storage) => JSON.stringify({ ...storage }));
  const texts = [document.cookie, location.href, document.documentElement.outerHTML, ...stored];
  return { cookie: document.cookie, token: texts.some((text) => text.includes(token)) };
}

const CASES = {
  "sign-in": async (context) => {
    const tab = await Tab.open(context, origin, "sign-in", "test:sh");
    await tab.shows("#sign-in");
    await tab.signIn(`${token.slice(0, -1)}${token.endsWith("0") ? 1 : 0}`);
    const refused = await tab.fails();
    await tab.signIn(token);
    const principal = await (await tab.shows("#principal")).textContent();
    const cookies = (await context.cookies()).map(({ name, path, httpOnly, sameSite }) => [name, path, httpOnly, sameSite]);
    return { refused, principal, cookies, readable: await tab.page.evaluate(readable, token) };
  },
  text: async (context) => {
    const tab = await Tab.open(context, origin, "text", "test:sh");
    await tab.shows("#status");
    await tab.send("one");
    const first = await tab.rests(2);
    await tab.click("#again");
    await tab.page.waitForFunction((id) => !document.getElementById(id), first.messages[1][0]);
    const second = await tab.rests(2);
    await tab.send("two");
    const last = await tab.rests(4);
    await tab.reload();
    return { ...last, regenerated: [first, second], restored: await tab.rests(4) };
  },
  tools: async (context) => {
    const tab = await Tab.open(context, origin, "tools", "test:tools");
    await tab.shows("#status");
    await tab.send("one");
    return tab.rests(2);
  },
  streams: async (context) => {
    const tab = await Tab.open(context, origin, "streams", "test:slow");
    await tab.shows("#status");
    await tab.send("one");
    await tab.says("six");
    return { ...(await tab.rests(2)), shown: await tab.shown() };
  },
  resume: async (context) => {
    const tab = await Tab.open(context, origin, "resume", "test:slow");
    await tab.shows("#status");
    await tab.send("one");
    await tab.says("two");
    await tab.reload();
    await tab.says("six");
    return { ...(await tab.rests(2)), shown: await tab.shown() };
  },
  error: async (context) => {
    const tab = await Tab.open(context, origin, "error", "test:fails");
    await tab.shows("#status");
    await tab.send("one");
    return tab.fails();
  },
  stop: async (context) => {
    const tab = await Tab.open(context, origin, "stop", "test:long");
    await tab.shows("#status");
    await tab.send("one");
    await tab.page.waitForFunction(() => document.querySelector("[data-part=phase]")?.textContent === "running");
    await tab.click("#stop");
    return tab.rests(2);
  },
  // The cookie has no port: the browser sends it for pages of both origins.
  other: async (context) => {
    const [tab, own] = await Promise.all([other, origin].map((at) => Tab.open(context, at, "other", "test:sh")));
    await Promise.all([tab.shows("#status"), own.shows("#status")]);
    await tab.send("one");
    const refused = await tab.fails();
    const forged = await tab.page.evaluate(order, [origin, "forged"]);
    return { ...refused, forged, control: await own.page.evaluate(order, [origin, "own"]) };
  },
  "sign-out": async (context) => {
    const tab = await Tab.open(context, origin, "sign-out", "test:sh");
    const open = await Tab.open(context, origin, "sign-out", "test:sh");
    await Promise.all([tab.shows("#status"), open.shows("#status")]);
    const before = await context.cookies();
    await tab.click("#leave");
    await tab.shows("#sign-in");
    const after = await context.cookies();
    await open.send("one");
    const refused = await open.fails();
    await context.addCookies(before); // one who kept the cookie
    await tab.page.reload();
    await tab.shows("#sign-in");
    return { ...refused, before: before.length, after: after.length };
  },
};

// Cases that run at the same time. A browser opens six connections to an origin, and each answer is one. The last ends the
// session.
const GROUPS = [["sign-in"], ["streams", "resume", "stop", "tools"], ["text", "error"], ["other"], ["sign-out"]];

async function run(name, context) {
  const began = performance.now();
  const result = await CASES[name](context);
  return JSON.stringify({ case: name, ...result, milliseconds: Math.round(performance.now() - began) });
}

await bundle(folder);
const browser = await launch();
try {
  const context = await browser.newContext();
  for (const names of GROUPS) {
    const lines = await Promise.all(names.map((name) => run(name, context)));
    console.log(lines.join("\n"));
  }
} finally {
  await browser.close();
}
