// Takes the pictures of docs/src/how-to/images, of runs that are the same each time.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, ended, input, order, running, suite, until, Visit } from "./driver.mjs";
import { reduce } from "./palette.mjs";

mkdirSync(input.shots, { recursive: true });
const SIZE = { width: 960, height: 640 };
const RUNS = [
  ["review-the-parser", "team:review"], ["fix-login-redirect", "team:edit"], ["upgrade-tls", "team:upgrade"], ["summarise-tickets", "team:review"],
  ["clean-up-logs", "team:edit"],
];

// Writes the picture, without the times of this run.
async function shot(visit, name) {
  await visit.page.evaluate(() => {
    for (const [index, time] of [...document.querySelectorAll("time")].entries()) time.textContent = `10:24:${String(59 - index).padStart(2, "0")}`;
    for (const [index, took] of [...document.querySelectorAll(".elapsed")].entries()) took.textContent = `${index + 2} s`;
    for (const time of document.querySelectorAll(".approval-time")) time.textContent = "asked 12 s ago, expires in 4 min";
    document.activeElement?.blur();
  });
  const path = join(input.shots, `dashboard-${name}.png`);
  const picture = reduce(await visit.page.screenshot({ animations: "disabled" }));
  writeFileSync(path, picture);
  return { path, bytes: picture.length, text: await visit.text() };
}

const open = (browser) => Visit.as(browser, "boss", { viewport: SIZE, colorScheme: "light" });

const CASES = {
  ordered: async () => {
    const ends = [];
    for (const [run, agent] of RUNS) {
      const limits = agent === "team:upgrade" ? { limits: { totalTokens: 20 } } : {};
      await order("ann", run, agent, limits);
      ends.push(await ended("ann", run));
    }
    return { ends };
  },
  runs: async (browser) => {
    await order("ann", "watch-the-build", "team:watch");
    await running("ann", "watch-the-build");
    const visit = await open(browser);
    await visit.page.setViewportSize({ width: 1280, height: 600 });
    await visit.go("/sandbox", "tbody tr");
    return shot(visit, "runs");
  },
  run: async (browser) => {
    const visit = await open(browser);
    await visit.go("/sandbox/upgrade-tls?tab=refusals", ".refusal");
    await visit.page.setViewportSize({ ...SIZE, height: 760 });
    return shot(visit, "run");
  },
  chat: async (browser) => {
    const visit = await Visit.as(browser, "ann", { viewport: SIZE, colorScheme: "light" });
    await visit.go("/chat?agent=team:edit", "#question");
    await visit.page.waitForSelector("select");
    await visit.page.fill("#question", "Why does the login redirect twice?");
    await visit.page.keyboard.press("Enter");
    await visit.button("Regenerate").waitFor();
    return shot(visit, "chat");
  },
  approvals: async (browser) => {
    await order("ann", "ask-before-acting", "team:ask");
    await until(async () => (await api("ann", "GET", "/approvals")).json.approvals.length, (count) => count === 1, "a call waits");
    const visit = await Visit.as(browser, "ann", { viewport: { ...SIZE, height: 400 }, colorScheme: "light" });
    await visit.go("/approvals", "article.approval");
    const taken = await shot(visit, "approvals");
    for (const run of ["ask-before-acting", "watch-the-build"]) {
      await api("ann", "POST", `/runs/${run}/cancel`, {});
      await ended("ann", run);
    }
    return taken;
  },
  // The gateway does not run: its agent is shown as it would be.
  agent: async (browser) => {
    const agents = "/gateways/coding/agents";
    await api("ann", "POST", agents, { name: "Research Bot" });
    const settings = {
      revision: 1, name: "Research Bot", avatar: null, model: null, commands: "ask", web: "on", files: "on",
      allowedCommands: ["make test"],
    };
    await api("ann", "PUT", `${agents}/research-bot`, settings);
    const visit = await Visit.as(browser, "ann", { viewport: { ...SIZE, height: 760 }, colorScheme: "light" });
    await visit.page.route(`**/api/v1${agents}/research-bot`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), state: "applied", step: null, problem: null } });
    });
    await visit.go("/gateways/coding/research-bot", "fieldset");
    return shot(visit, "agent");
  },
};

// Text in shades of grey makes small files.
await suite(CASES, ["--disable-lcd-text"]);
