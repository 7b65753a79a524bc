// Looks for breaches of the Content Security Policy on all pages of the dashboard, and plants some.
import { elsewhere, ended, order, origin, suite, tokens, Visit } from "./driver.mjs";

const PAGES = [
  "/sandbox", "/sandbox?state=failed", "/sandbox/done", "/chat", "/chat/thread-1", "/approvals", "/accounts", "/accounts/acct-7",
  "/accounts/acct-7?tab=statement", "/accounts/acct-7?tab=receipts", "/agents", "/agents/draft", "/gateways", "/studio", "/system", "/sandbox/never-was",
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
  await visit.page.waitForTimeout(500);
  const planted = await visit.page.evaluate(() => window.planted ?? null);
  return { planted, violations: visit.violations, reports: visit.answers.filter((answer) => answer.includes("csp-reports")) };
}

const CASES = {
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
      await visit.page.waitForTimeout(250);
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
