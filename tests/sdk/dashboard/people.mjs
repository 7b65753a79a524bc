// Uses the dashboard as people do who decide, who see little, who have no mouse.
import { api, breaches, ended, idle, input, order, origin, running, suite, tabTo, tokens, until, Visit } from "./driver.mjs";
import { asks, walkStates } from "./states.mjs";

const PAGES = [
  "/", "/sandbox", "/sandbox/failed", "/sandbox/failed?tab=events", "/sandbox/failed?tab=output", "/sandbox/failed?tab=timeline", "/chat", "/chat/talk", "/chat/never-was", "/approvals", "/accounts",
  "/accounts/acct-7", "/agents", "/agents/draft", "/agents/skill", "/agents/proposals", "/gateways", "/gateways/coding",
  "/gateways/coding/main", ...["behaviour", "sessions", "files"].map((tab) => `/gateways/coding/main?tab=${tab}`), "/system", "/sandbox/never-was",
];

// Waits until a call of this run waits, and returns its id.
const waiting = (run) =>
  until(async () => (await api("ann", "GET", "/approvals")).json.approvals.find((call) => call.runId === run)?.callId, Boolean, `a call of ${run}`, 40_000);

// Orders a run whose call waits; returns its card.
async function card(visit, run) {
  await order("ann", run, "test:asks");
  const call = await waiting(run);
  await visit.go("/approvals");
  const found = visit.page.locator("article.approval", { hasText: run });
  await found.waitFor();
  return { found, call };
}

const callState = async (run) => (await api("ann", "GET", `/runs/${run}/tools`)).json.calls[0]?.state;
const verdict = async (run) => [await ended("ann", run), await callState(run)];

// Rules of axe that pages break, in one way to see them.
async function checked(browser, options) {
  const visit = await Visit.as(browser, "boss", options);
  const broken = {};
  let passes = 0;
  for (const path of PAGES) {
    await visit.go(path);
    await idle(visit.page, 150);
    const seen = await breaches(visit.page);
    passes += seen.passes;
    if (seen.shown.length > 0) broken[path] = seen.shown;
    const width = await visit.page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    if (width[0] > width[1]) broken[`${path} width`] = width;
  }
  return { broken, passes };
}

const CASES = {
  ordered: async () => {
    await order("ann", "expires", "test:asks");
    await order("ann", "failed", "test:fails");
    await order("boss", "talked", "test:sh", { stateKey: "talk" });
    return { states: [await ended("ann", "failed"), await ended("boss", "talked")] };
  },
  expired: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    await waiting("expires");
    await visit.go("/approvals");
    const found = visit.page.locator("article.approval", { hasText: "expires" });
    const left = await found.locator(".approval-time").innerText();
    await found.getByRole("button", { name: "Approve …" }).click();
    const verdict = [await ended("ann", "expires"), await callState("expires")];
    await visit.page.locator("dialog").getByRole("button", { name: "Approve", exact: true }).click();
    await visit.page.locator(".outcomes").waitFor();
    return { left, verdict, conflict: visit.answers.filter((answer) => answer.startsWith("409")).length, outcome: await visit.page.locator(".outcomes").innerText(), cards: await found.count() };
  },
  approve: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    const { found } = await card(visit, "yes");
    await found.getByRole("button", { name: "Approve …" }).click();
    const asked = await visit.page.locator("dialog").innerText();
    await visit.page.locator("dialog").getByRole("button", { name: "Approve", exact: true }).click();
    await visit.page.locator(".outcomes").waitFor();
    return { asked, outcome: await visit.page.locator(".outcomes").innerText(), verdict: await verdict("yes") };
  },
  deny: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    const { found } = await card(visit, "no");
    await found.getByRole("button", { name: "Deny …" }).click();
    await visit.page.locator("dialog textarea").fill("not today");
    await visit.page.locator("dialog").getByRole("button", { name: "Deny", exact: true }).click();
    await visit.page.locator(".outcomes").waitFor();
    return { outcome: await visit.page.locator(".outcomes").innerText(), verdict: await verdict("no") };
  },
  elsewhere: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    const { found, call } = await card(visit, "late");
    await found.getByRole("button", { name: "Approve …" }).click();
    const denied = await api("ann", "POST", `/runs/late/tools/${call}/deny`, {});
    await visit.page.locator("dialog").getByRole("button", { name: "Approve", exact: true }).click();
    await visit.page.locator(".outcomes").waitFor();
    return { denied: denied.status, conflict: visit.answers.filter((answer) => answer.startsWith("409")).length, outcome: await visit.page.locator(".outcomes").innerText(), verdict: await verdict("late") };
  },
  skill: async (browser) => {
    const visit = await Visit.as(browser, "boss");
    await visit.go("/agents");
    await visit.page.getByRole("link", { name: "Draft a skill" }).click();
    const draft = async (agent) => {
      await visit.page.getByLabel("Agent, required").fill(agent);
      await visit.page.getByLabel("Whole text of the file, in Markdown").fill("# Tools\n\nUse grep.\n");
      const answered = visit.page.waitForResponse((answer) => answer.url().endsWith("/behaviour/draft"));
      await visit.button("Draft").click();
      await answered;
      await visit.page.locator("#drafted").waitFor();
      await idle(visit.page);
      return visit.page.locator("section[aria-labelledby=drafted]").innerText();
    };
    return { drafted: await draft("test:skilled"), refused: await draft("test:sh") };
  },
  light: (browser) => checked(browser, { colorScheme: "light" }),
  dark: (browser) => checked(browser, { colorScheme: "dark" }),
  phone: (browser) => checked(browser, { colorScheme: "dark", viewport: { width: 360, height: 740 } }),
  // A window of 1280 px at twice the size.
  zoom: (browser) => checked(browser, { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 }),
  forced_colours: (browser) => checked(browser, { forcedColors: "active", reducedMotion: "reduce" }),
  states: async (browser) => {
    await order("ann", "shown", "test:long");
    await running("ann", "shown");
    const visit = await Visit.as(browser, "boss");
    const broken = {};
    const texts = {};
    await walkStates(visit, async (name, schemes) => {
      for (const colorScheme of schemes) {
        await visit.page.emulateMedia({ colorScheme });
        const { shown } = await breaches(visit.page);
        if (shown.length > 0) broken[`${name} ${colorScheme}`] = shown;
      }
      texts[name] = (await visit.text()).slice(0, 4000);
    });
    await api("ann", "POST", "/runs/shown/cancel", {});
    await ended("ann", "shown");
    return { broken, texts };
  },
  signed_out: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(`${origin}/signin`);
    await visit.page.waitForSelector("#token");
    const control = await visit.page.evaluate(() => {
      const picture = document.createElement("img");
      picture.src = "/assets/none.png";
      return picture.outerHTML;
    });
    const clean = [];
    for (const colorScheme of ["light", "dark"]) {
      await visit.page.emulateMedia({ colorScheme });
      clean.push(...(await breaches(visit.page)).shown);
    }
    await visit.page.evaluate(() => document.querySelector("main").append(document.createElement("img")));
    return { clean, control: (await breaches(visit.page)).shown.length, made: control.length };
  },
  motion: async (browser) => {
    const moving = {};
    for (const reducedMotion of ["reduce", "no-preference"]) {
      const visit = await Visit.as(browser, "ann", { reducedMotion });
      await asks(visit, "test:words", "two");
      moving[reducedMotion] = await visit.page.evaluate(() => document.getAnimations().filter((one) => one.effect.getComputedTiming().duration > 10).length);
    }
    return { moving };
  },
  keyboard: async (browser) => {
    await order("ann", "stuck", "test:long");
    await running("ann", "stuck");
    const visit = await Visit.open(browser);
    const { page } = visit;
    await page.goto(`${origin}/signin`);
    await page.waitForSelector("#token");
    await page.keyboard.type(tokens.ann);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".tiles");
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#main tbody tr.row-open");
    await tabTo(page, "Failed");
    await page.keyboard.press("Space");
    await page.waitForURL(/state=/);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 0 && [...document.querySelectorAll("tbody .chip")].every((chip) => /failed|timed out/.test(chip.innerText)));
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".run-title");
    const failed = page.url();
    const why = await page.locator(".error-note").first().innerText();
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#filter-id");
    await page.keyboard.press("/");
    await page.keyboard.type("stuck");
    await page.keyboard.press("Enter");
    await page.waitForURL(/id=stuck/);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".run-title");
    await page.getByRole("button", { name: "Cancel …" }).waitFor();
    await page.keyboard.press("c");
    await page.waitForSelector("dialog[open]");
    await tabTo(page, "Cancel the run");
    await page.keyboard.press("Enter");
    const cancelled = await ended("ann", "stuck");
    await page.waitForSelector("dialog", { state: "detached" });
    await order("ann", "keys", "test:asks");
    await waiting("keys");
    await tabTo(page, "Approvals");
    await page.keyboard.press("Enter");
    await page.locator("article.approval").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    await page.waitForSelector("dialog[open]");
    await tabTo(page, "Approve");
    await page.keyboard.press("Enter");
    const approved = await verdict("keys");
    await page.waitForSelector("dialog", { state: "detached" });
    await tabTo(page, "Chat");
    await page.keyboard.press("Enter");
    await page.locator("select option[value='test:sh']").waitFor({ state: "attached" });
    await tabTo(page, await page.evaluate(() => document.querySelector("select").labels[0].textContent.trim()));
    await page.keyboard.type("Quick");
    await page.waitForFunction(() => document.querySelector("select").value === "test:sh");
    await tabTo(page, "Question");
    await page.keyboard.type("By keys alone");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Regenerate", exact: true }).waitFor();
    return { failed, why, cancelled, approved, chat: await page.locator(".chat-log").innerText() };
  },
};

await suite(CASES);
