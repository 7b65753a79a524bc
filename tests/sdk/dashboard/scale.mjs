// Shows many runs and many events in the dashboard, in many tabs, over bad networks.
import { api, ended, idle, input, order, origin, suite, until, Visit } from "./driver.mjs";

const rows = (visit) => visit.page.locator("tbody tr").count();
const ids = (visit) => visit.page.locator("tbody tr .run-id").allInnerTexts();
const lists = (visit) => visit.requests.filter((request) => /GET .*\/api\/v1\/runs(\?|$)/.test(request)).length;

// Says to a page that its tab is hidden, as a browser does with tabs in the background.
const hide = (page) => page.evaluate(() => {
  for (const [name, value] of [["hidden", true], ["visibilityState", "hidden"]]) Object.defineProperty(document, name, { configurable: true, get: () => value });
  document.dispatchEvent(new Event("visibilitychange"));
});

// Opens seven tabs of one page with a stream; returns how many show it.
async function tabs(browser, hides) {
  const visit = await Visit.as(browser, "ann");
  let shown = 0;
  for (let tab = 0; tab < 7; tab += 1) {
    const page = tab === 0 ? visit.page : await visit.context.newPage();
    page.setDefaultTimeout(4000);
    const opened = page.goto(`${origin}/sandbox`).then(() => page.waitForSelector("tbody tr"));
    shown += await opened.then(() => 1, () => 0);
    if (shown > tab) await idle(page);
    if (hides) await hide(page);
  }
  return shown;
}

const CASES = {
  list: async (browser) => {
    const visit = await Visit.as(browser, "boss");
    // The page after the sign-in has asked for all it shows before its requests are forgotten.
    await idle(visit.page);
    visit.requests.length = 0;
    await visit.go("/sandbox", "tbody tr");
    const first = { rows: await rows(visit), lists: lists(visit), nodes: await visit.page.evaluate(() => document.querySelectorAll("*").length) };
    const seen = new Set(await ids(visit));
    const before = await ids(visit);
    await order("ann", "newest", "test:sh");
    await visit.page.locator(".new-rows").waitFor();
    const stable = JSON.stringify((await ids(visit)).slice(0, 5)) === JSON.stringify(before.slice(0, 5));
    const pages = [];
    for (let page = 0; page < 5; page += 1) {
      visit.requests.length = 0;
      const last = (await ids(visit))[0];
      await visit.page.getByRole("link", { name: "Older →" }).click();
      await visit.page.waitForFunction((last) => document.querySelector("tbody .run-id") && document.querySelector("tbody .run-id").innerText !== last, last);
      for (const id of await ids(visit)) seen.add(id);
      pages.push(lists(visit));
    }
    return { first, stable, pages, seen: seen.size };
  },
  filters: async (browser) => {
    const visit = await Visit.as(browser, "boss");
    await visit.go("/sandbox?state=cancelled", ".empty, tbody tr");
    const text = await visit.text();
    await visit.page.getByRole("button", { name: /clear/i }).first().click();
    await visit.page.waitForSelector("tbody tr");
    return { text, rows: await rows(visit), url: visit.page.url() };
  },
  events: async (browser) => {
    await order("ann", "many", "test:many");
    const ends = await ended("ann", "many");
    const visit = await Visit.as(browser, "ann");
    await visit.go("/sandbox/many?tab=events", ".event");
    await until(async () => visit.page.locator(".tab-panel .muted.num").first().innerText(), (text) => Number(text.replace(/\D/g, "")) >= 2000, "rows");
    const count = Number((await visit.page.locator(".tab-panel .muted.num").first().innerText()).replace(/\D/g, ""));
    await visit.button("To the end").click();
    await idle(visit.page, 400);
    const events = await visit.page.locator(".event").count();
    const last = await visit.page.locator(".event").last().innerText();
    await visit.page.getByRole("button", { name: /^Next failure/ }).click();
    const found = await visit.page.locator(".event-found").innerText();
    return { ends, count, events, last, found, nodes: await visit.page.evaluate(() => document.querySelectorAll("*").length) };
  },
  long: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    const { page } = visit;
    const began = Date.now();
    await visit.go("/sandbox/long?tab=events", ".event");
    const painted = Date.now() - began;
    const look = async () => ({ rows: await page.locator(".event").count(), text: await page.locator(".virtual").innerText() });
    const count = async () => Number((await page.locator(".tab-panel .muted.num").first().innerText()).replace(/\D/g, ""));
    const first = await look();
    await until(count, (rows) => rows >= 100_000, "all events", 60_000);
    const loaded = Date.now() - began;
    await visit.button("To the end").click();
    await visit.says("succeeded");
    await idle(page, 300);
    const end = await look();
    await page.getByRole("button", { name: /^Next failure/ }).click();
    await page.locator(".event-found").waitFor();
    const failed = { ...(await look()), text: await page.locator(".event-found").innerText() };
    const devtools = await visit.context.newCDPSession(page);
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize: heap } = await devtools.send("Runtime.getHeapUsage");
    return { painted, loaded, first, end: { ...end, text: end.text.slice(-300) }, failed, count: await count(), heap };
  },
  // A browser has six connections to a server: the tabs answer since those in the background have none.
  tabs: async (browser) => ({ shown: await tabs(browser, true), control: await tabs(browser, false) }),
  slow: async (browser) => {
    await order("ann", "slow", "test:long");
    await until(async () => (await api("ann", "GET", "/runs/slow")).json.state, (state) => state === "running", "slow runs", 40_000);
    const visit = await Visit.as(browser, "ann");
    // A slow network of the third generation, for files and for data.
    const devtools = await visit.context.newCDPSession(visit.page);
    await devtools.send("Network.enable");
    await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
    await devtools.send("Network.emulateNetworkConditions", { offline: false, latency: 2000, downloadThroughput: 50_000, uploadThroughput: 50_000 });
    const began = Date.now();
    await visit.page.goto(`${origin}/sandbox/slow`, { waitUntil: "commit" });
    const committed = Date.now() - began;
    await visit.page.waitForSelector(".skeleton");
    const drawn = Date.now() - began;
    await visit.page.getByRole("button", { name: "Cancel …" }).click();
    const confirm = visit.button("Cancel the run");
    await confirm.click();
    await visit.page.locator("dialog button[type=submit]:disabled").waitFor();
    await visit.page.locator("dialog button[type=submit]").click({ force: true, timeout: 500 }).catch(() => undefined);
    await visit.page.locator("dialog").waitFor({ state: "detached" });
    await ended("ann", "slow");
    return { committed, drawn, cancels: visit.requests.filter((request) => request.endsWith("/cancel")).length };
  },
  offline: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    // The code of a page is there once the page was shown.
    await visit.go("/accounts");
    await visit.page.getByRole("link", { name: "Runs", exact: true }).click();
    await visit.page.waitForSelector("tbody tr .run-id");
    await visit.context.setOffline(true);
    await visit.page.getByRole("link", { name: "Accounts" }).click();
    await visit.page.waitForSelector("[role=alert]");
    const lost = await visit.page.locator("[role=alert]").first().innerText();
    // A page whose code was never loaded.
    await visit.page.getByRole("link", { name: "Agents", exact: true }).click();
    await visit.says("Sluicegate does not answer");
    const unloaded = await visit.page.locator("#main [role=alert]").innerText();
    await visit.button("Try again").click();
    await idle(visit.page, 300);
    const stays = await visit.text();
    await visit.context.setOffline(false);
    await visit.button("Try again").click();
    await visit.page.waitForSelector("#main h1");
    const loaded = await visit.page.locator("#main h1").innerText();
    await visit.go("/accounts", "tbody tr");
    return { lost, unloaded, stays: stays.includes("No connection"), loaded, text: (await visit.text()).includes("acct-7") };
  },
};

await suite(CASES);
