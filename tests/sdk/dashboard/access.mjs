// Signs in and out of the dashboard, and attacks that: from other origins, by other roles and accounts, by hand.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { api, elsewhere, ended, idle, input, order, origin, running, state, suite, tokens, until, Visit } from "./driver.mjs";

const { link, sluice } = input;
const code = link.split("#code=")[1];
const port = new URL(origin).port;

// Everything that a page of this origin, or a later visitor, could read.
async function readable(visit) {
  const devtools = await visit.context.newCDPSession(visit.page);
  const { entries } = await devtools.send("Page.getNavigationHistory");
  const inside = await visit.page.evaluate(async () => {
    const databases = (await indexedDB.databases()).length;
    const cached = (await caches.keys()).length;
    const stored = [localStorage, sessionStorage].map((storage) => JSON.stringify({ ...storage }));
    return JSON.stringify([
      location.href, document.referrer, document.cookie, document.documentElement.outerHTML, stored, databases, cached, history.state,
      performance.getEntries().map((entry) => entry.name), [...document.querySelectorAll("input")].map((field) => field.value), window.name,
    ]);
  });
  return { inside, history: JSON.stringify(entries.map(({ url, userTypedURL }) => [url, userTypedURL])), console: visit.errors.join("\n"), urls: visit.requests.join("\n") };
}

const places = (readable, secret) => Object.entries(readable).filter(([, text]) => text.includes(secret)).map(([place]) => place);

const CASES = {
  link: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(link);
    await visit.page.waitForSelector(".frame");
    await visit.go("/");
    const seen = await readable(visit);
    // Control: the search finds what is there.
    await visit.page.evaluate((code) => void (document.title = code), code);
    const control = places(await readable(visit), code);
    return { found: places(seen, code), control, url: visit.page.url(), who: await visit.page.locator(".identity").innerText() };
  },
  used_link: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(link);
    await visit.page.waitForSelector("[role=alert]");
    return { text: await visit.text(), cookies: (await visit.context.cookies()).length, url: visit.page.url() };
  },
  other_session: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    const sent = () => visit.requests.filter((url) => url.endsWith("/session/link")).length;
    await visit.page.goto(link);
    await visit.page.waitForSelector("text=Use the link");
    const asks = await visit.text();
    const before = sent();
    await visit.page.click("text=Stay signed in");
    await visit.page.waitForSelector(".frame");
    const stays = (await visit.page.locator(".identity").innerText()).includes("ann");
    // A document of its own: the link differs from the page that is open by what is behind `#` alone.
    await visit.page.goto("about:blank");
    await visit.page.goto(link);
    await visit.page.click("text=Use the link");
    await visit.page.waitForSelector("[role=alert]");
    const used = await visit.text();
    await visit.page.goto("about:blank");
    await visit.page.goto(link);
    await visit.page.click("text=Stay signed in");
    const declined = sent();
    await visit.button("Sign out").click();
    await visit.page.waitForSelector("#token:enabled");
    return { asks, sent: before, stays, used, sentLater: sent() - declined };
  },
  token: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    await visit.go("/sandbox");
    const cookies = (await visit.context.cookies()).map(({ name, path, httpOnly, sameSite, domain, value }) => ({ name, path, httpOnly, sameSite, domain, long: value.length >= 43 }));
    const [cookie] = await visit.context.cookies();
    const seen = await readable(visit);
    return { found: places(seen, tokens.ann), cookie: places(seen, cookie.value), cookies };
  },
  wrong_token: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(`${origin}/signin`);
    const said = [];
    for (let tries = 0; tries < 40 && !said.at(-1)?.includes("too_many_attempts"); tries += 1) {
      await visit.page.fill("#token", `${tokens.ann}x`);
      const answered = visit.page.waitForResponse((answer) => answer.url().endsWith("/session") && answer.request().method() === "POST");
      await visit.page.keyboard.press("Enter");
      await answered;
      await visit.page.waitForFunction(() => document.querySelector("#token")?.disabled === false && document.querySelector("[role=alert]"));
      said.push(await visit.page.locator("[role=alert]").innerText());
    }
    const metrics = await (await fetch(`${origin}/metrics`)).text();
    const count = (result) => Number(new RegExp(`sluice_sign_ins_total\\{way="token",result="${result}"\\} (\\d+)`).exec(metrics)?.[1] ?? -1);
    await visit.page.fill("#token", tokens.ann);
    await visit.page.keyboard.press("Enter");
    await visit.page.waitForSelector(".frame");
    return { first: said[0], last: said.at(-1), refused: count("refused"), limited: count("limited") };
  },
  other_origins: async (browser) => {
    await order("ann", "kept", "test:long");
    await running("ann", "kept");
    const path = "/api/v1/runs/kept/cancel";
    const control = await elsewhere({
      "/": "<!doctype html><title>elsewhere</title>",
      "/form": `<!doctype html><form method="post" enctype="text/plain" action="${origin}${path}"><input name='{"x":"' value='"}'></form><script>document.forms[0].submit()</script>`,
      "/image": `<!doctype html><img src="${origin}${path}"><img src="${origin}/api/v1/session">`,
    });
    const visit = await Visit.as(browser, "ann");
    const page = visit.page;
    const sent = {};
    const names = { same_site: control.origin, cross_site: control.origin.replace("127.0.0.1", "localhost") };
    for (const [name, other] of Object.entries(names)) {
      visit.answers.length = 0;
      await page.goto(`${other}/`);
      const got = await page.evaluate(async (url) => {
        const send = (more) => fetch(url, { method: "POST", credentials: "include", ...more }).then((answer) => `${answer.type} ${answer.status}`, (error) => error.name);
        return [
          await send({ headers: { "content-type": "application/json" }, body: "{}" }),
          await send({ mode: "no-cors", headers: { "content-type": "text/plain" }, body: "{}" }),
        ];
      }, origin + path);
      await page.goto(`${other}/form`);
      await page.waitForLoadState();
      await page.goto(`${other}/image`);
      await page.waitForLoadState();
      sent[name] = { got, answers: visit.answers.filter((answer) => /\/(cancel|session)$/.test(answer)) };
    }
    const before = await state("ann", "kept");
    await visit.go("/sandbox/kept");
    const own = await page.evaluate((path) => fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }).then(({ status }) => status), path);
    return { sent, before, own, after: await until(() => state("ann", "kept"), (now) => now === "cancelled", "control: cancelled") };
  },
  framing: async (browser) => {
    const control = await elsewhere({ "/": `<!doctype html><iframe name="d" src="${origin}/sandbox"></iframe><iframe name="c" src="/inner"></iframe>`, "/inner": "<!doctype html><p>inner</p>" });
    const visit = await Visit.as(browser, "ann");
    await visit.page.goto(`${control.origin}/`);
    await visit.page.frame({ name: "c" }).locator("p").waitFor();
    await idle(visit.page, 500);
    const text = (name) => visit.page.frame({ name }).evaluate(() => document.body.innerText).catch((error) => String(error));
    return { dashboard: await text("d"), control: await text("c"), answers: visit.answers };
  },
  rebinding: async (browser) => {
    const control = await elsewhere({ "/sandbox": "<!doctype html><p>rebound</p>" });
    const visit = await Visit.open(browser);
    const own = await visit.page.goto(`http://attacker.invalid:${port}/sandbox`);
    const text = await visit.text();
    const other = await visit.page.goto(`http://attacker.invalid:${control.port}/sandbox`);
    return { own: own.status(), shows: text.includes("Sign in"), control: other.status() };
  },
  viewer: async (browser) => {
    await order("ann", "live", "test:long");
    await running("ann", "live");
    const seen = {};
    for (const who of ["reader", "ann"]) {
      const visit = await Visit.as(browser, who);
      await visit.go("/sandbox/live");
      await visit.says(who === "reader" ? "take the role member" : "Cancel …");
      const buttons = () => visit.page.locator("main button").allInnerTexts();
      const run = (await buttons()).filter((text) => /Cancel|Start again/.test(text));
      const says = (await visit.text()).includes("take the role member");
      await visit.go("/chat");
      const ask = await visit.page.locator("#question").count();
      const nav = await visit.page.locator("header nav a").allInnerTexts();
      if (who === "ann") {
        seen[who] = { run, says, ask, nav };
        continue;
      }
      const byHand = await visit.page.evaluate(async () => {
        const send = async (method, path, body) => (await fetch(`/api/v1${path}`, { method, headers: { "content-type": "application/json" }, ...(body ? { body } : {}) })).status;
        return [
          await send("POST", "/runs/live/cancel", "{}"), await send("PUT", "/runs/viewer-run", '{"agentId":"test:sh","input":"x"}'),
          await send("PUT", "/accounts/acct-7/limits", '{"cost":"1"}'), await send("GET", "/system"), await send("PUT", "/freezes/all", '{"reason":"x"}'),
        ];
      });
      seen[who] = { run, says, ask, nav, byHand };
    }
    return { seen, state: await state("ann", "live") };
  },
  foreign: async (browser) => {
    const visit = await Visit.as(browser, "bob");
    await visit.go("/sandbox/live");
    const text = await visit.text();
    const status = await visit.page.evaluate(async () => [(await fetch("/api/v1/runs/live")).status, (await fetch("/api/v1/runs/never-was")).status]);
    await visit.go("/sandbox");
    return { text, status, listed: await visit.page.locator(".run-id").allInnerTexts() };
  },
  revoked: async (browser) => {
    const visit = await Visit.as(browser, "gone");
    await visit.go("/sandbox/live?tab=events");
    await visit.says("running");
    const [program, ...first] = sluice;
    await promisify(execFile)(program, [...first, "principals", "revoke", "gone"], { env: { PATH: process.env.PATH } });
    const began = Date.now();
    await visit.page.waitForSelector("#token", { timeout: 15_000 });
    const took = Date.now() - began;
    await api("ann", "POST", "/runs/live/cancel", {});
    await ended("ann", "live");
    return { took, text: await visit.text() };
  },
  back: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    await visit.go("/sandbox/kept");
    await visit.go("/accounts");
    await visit.button("Sign out").click();
    await visit.page.waitForSelector("#token");
    await visit.page.goBack();
    await visit.page.waitForSelector("#token");
    const text = await visit.text();
    const status = await visit.page.evaluate(async () => (await fetch("/api/v1/session")).status);
    return { text, status, cookies: (await visit.context.cookies()).length };
  },
};

await suite(CASES, ["--host-resolver-rules=MAP attacker.invalid 127.0.0.1"]);
