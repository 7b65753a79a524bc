// Looks for breaches of the Content Security Policy on all pages of the dashboard, and plants some.
import { readFileSync, readlinkSync, readdirSync } from "node:fs";
import { elsewhere, ended, idle, order, origin, suite, tokens, until, Visit } from "./driver.mjs";

const PAGES = [
  "/", "/?range=90d", "/sandbox", "/sandbox?state=failed", "/sandbox/done", "/chat", "/chat/thread-1", "/approvals", "/accounts", "/accounts/acct-7",
  "/accounts/acct-7?tab=statement", "/accounts/acct-7?tab=receipts", "/agents", "/agents/draft", "/agents/skill", "/agents/proposals", "/gateways", "/gateways/coding",
  "/gateways/coding/main", ...["behaviour", "sessions", "files"].map((tab) => `/gateways/coding/main?tab=${tab}`), "/system", "/sandbox/never-was",
];
const TABS = ["events", "output", "calls", "tools", "refusals", "receipts", "git", "timeline"];
const SCRIPT = "<script>window.planted = 1</script><img src=x onerror='window.planted = 1'>";

// Counts each time that the code of a page makes code of a text; what drives the page does so, too. Runs before the page.
function countEvals() {
  window.evals = 0;
  const count = () => { window.evals += new Error().stack.includes("/assets/") ? 1 : 0; };
  for (const name of ["eval", "Function"]) {
    window[name] = new Proxy(window[name], {
      construct: (target, list, as) => { count(); return Reflect.construct(target, list, as); },
      apply: (target, self, list) => { count(); return Reflect.apply(target, self, list); },
    });
  }
}

// Opens a page into which a proxy, or an attacker, has put markup.
async function plant(browser, keeps) {
  const visit = await Visit.open(browser);
  await visit.page.route(`${origin}/signin`, async (route) => {
    const answer = await route.fetch();
    const headers = { ...answer.headers() };
    if (!keeps) delete headers["content-security-policy"];
    delete headers["content-length"];
    delete headers["content-encoding"];
    return route.fulfill({ status: 200, headers, body: (await answer.text()).replace("</body>", `${SCRIPT}</body>`) });
  });
  await visit.page.goto(`${origin}/signin`);
  await visit.page.waitForSelector("#token");
  await idle(visit.page, 500);
  const planted = await visit.page.evaluate(() => window.planted ?? null);
  return { planted, violations: visit.violations, reports: visit.answers.filter((answer) => answer.includes("csp-reports")) };
}

// Pages whose weight is recorded; the run is one that has ended.
const WEIGHED = [
  "/signin", "/", "/sandbox", "/sandbox/done", "/sandbox/done?tab=events", "/chat", "/approvals", "/accounts", "/accounts/acct-7", "/agents",
  "/agents/draft", "/agents/skill", "/agents/proposals", "/gateways", "/gateways/coding", "/gateways/coding/main", "/system",
];
const QUIET_MS = 300;

// Opens a page with an empty cache. Returns the requests for files and for data, the bytes of files, and the time until a person
// can use it.
async function weigh(browser, storageState, path) {
  const visit = await Visit.open(browser, { storageState });
  const devtools = await visit.context.newCDPSession(visit.page);
  await devtools.send("Network.enable");
  const isData = new Map();
  let bytes = 0;
  let last = Date.now();
  devtools.on("Network.requestWillBeSent", ({ requestId, request }) => {
    isData.set(requestId, new URL(request.url).pathname.startsWith("/api/"));
    last = Date.now();
  });
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (isData.get(requestId) === false) bytes += encodedDataLength;
    last = Date.now();
  });
  await visit.go(path, path === "/signin" ? "#token" : "#main h1");
  const usable = await visit.page.evaluate(() => Math.round(performance.now()));
  await until(async () => Date.now() - last, (quiet) => quiet >= QUIET_MS, "no more requests");
  const kinds = [...isData.values()];
  await visit.context.close();
  return { files: kinds.filter((data) => !data).length, data: kinds.filter(Boolean).length, bytes, milliseconds: usable };
}

// Processes of Chromium: their user, and whether they are in a name space of users of their own, as its sandbox makes one.
function processes() {
  const status = (pid, file) => readFileSync(`/proc/${pid}/${file}`, "utf8");
  const own = readlinkSync("/proc/self/ns/user");
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const command = status(pid, "cmdline").replaceAll("\0", " ");
      if (!command.includes("--type=renderer")) return [];
      return [{ user: Number(/^Uid:\s+(\d+)/m.exec(status(pid, "status"))[1]), isSandboxed: readlinkSync(`/proc/${pid}/ns/user`) !== own, isSwitchedOff: command.includes("--no-sandbox") }];
    } catch {
      return []; // It has ended meanwhile.
    }
  });
}

const CASES = {
  unprivileged: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(`${origin}/signin`);
    return { own: process.getuid(), renderers: processes() };
  },
  weights: async (browser) => {
    await order("boss", "weighed", "test:sh");
    await ended("boss", "weighed");
    const visit = await Visit.as(browser, "boss");
    const state = await visit.context.storageState();
    const pages = {};
    for (const path of WEIGHED) pages[path] = await weigh(browser, path === "/signin" ? undefined : state, path.replace("done", "weighed"));
    return { pages };
  },
  pages: async (browser) => {
    await order("boss", "done", "test:sh", { stateKey: "thread-1" });
    await ended("boss", "done");
    const visit = await Visit.open(browser);
    await visit.context.addInitScript(countEvals);
    await visit.signIn(tokens.boss);
    const evals = {};
    const titles = [];
    for (const path of [...PAGES, ...TABS.map((tab) => `/sandbox/done?tab=${tab}`)]) {
      await visit.go(path);
      await idle(visit.page);
      titles.push(await visit.page.title());
      const count = await visit.page.evaluate(() => window.evals);
      if (count !== 0) evals[path] = count;
    }
    const foreign = [...visit.foreign];
    const other = await elsewhere({ "/": '<!doctype html><script src="/assets/x.js"></script>', "/assets/x.js": 'new Function("1")' });
    await visit.page.goto(`${other.origin}/`);
    const control = await visit.page.evaluate(() => window.evals);
    return {
      violations: visit.violations, reports: visit.requests.filter((request) => request.includes("csp-reports")), foreign, crashes: visit.crashes,
      evals, control, titles: [...new Set(titles)].length, errors: visit.errors.filter((error) => error.startsWith("error:") && !/status of 40\d/.test(error)),
    };
  },
  planted: (browser) => plant(browser, true),
  unprotected: (browser) => plant(browser, false),
  trusted_types: async (browser) => {
    const sinks = () => {
      const attempt = (run) => { try { run(); return "ran"; } catch (error) { return error.name; } };
      return [
        attempt(() => { document.createElement("div").innerHTML = "<b>x</b>"; }),
        attempt(() => { document.createElement("script").src = "/assets/x.js"; }),
        attempt(() => { document.createElement("div").insertAdjacentHTML("beforeend", "<b>x</b>"); }),
        attempt(() => { window.trustedTypes.createPolicy("x", { createHTML: (text) => text }); }),
      ];
    };
    const visit = await Visit.as(browser, "ann");
    await visit.go("/sandbox");
    const own = await visit.page.evaluate(sinks);
    const control = await elsewhere({ "/": "<!doctype html>" });
    await visit.page.goto(`${control.origin}/`);
    return { own, control: await visit.page.evaluate(sinks) };
  },
};

await suite(CASES);
