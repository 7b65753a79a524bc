// Reads the figures of the overview as people see them, and beside them those of the API.
import { api, ended, idle, order, origin, suite, until, Visit } from "./driver.mjs";

// Numbers in the table of a chart: its rows by their names, with the texts of their cells.
function table(page, title) {
  return page.evaluate((title) => {
    const rows = document.querySelectorAll(`table[aria-label="${title}"] tbody tr`);
    return [...rows].map((row) => [...row.children].map((cell) => cell.textContent));
  }, title);
}

const overview = async (who, range) => (await api(who, "GET", `/ai/overview?range=${range}`)).json;

// What a page shows of one range.
async function shown(visit, path) {
  await visit.go(path, ".tiles");
  await idle(visit.page);
  const tiles = await visit.page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) => [tile.querySelector("dt").textContent, tile.querySelector(".tile-value").textContent])));
  const tables = {};
  for (const title of ["Spending", "Tokens", "Runs by outcome", "Models", "Accounts", "Failures", "Refusals", "Waiting times"]) tables[title] = await table(visit.page, title);
  return { tiles, tables };
}

const CASES = {
  ordered: async () => {
    const ends = [];
    for (const [who, run] of [["ann", "one"], ["ann", "two"], ["bob", "three"]]) {
      await order(who, run, "test:sh");
      ends.push(await ended(who, run));
    }
    await until(() => overview("boss", "24h"), ({ total, refusals }) => total.calls === 3 && refusals[0]?.count === 3, "all is summed up");
    return { ends };
  },
  operator: async (browser) => {
    const visit = await Visit.as(browser, "boss");
    const first = visit.page.url();
    const seen = await shown(visit, "/");
    return { first, navigation: await visit.page.locator("nav[aria-label=Pages] a").allInnerTexts(), ...seen, api: await overview("boss", "24h") };
  },
  member: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    return { ...(await shown(visit, "/")), api: await overview("ann", "24h"), text: await visit.text() };
  },
  ranges: async (browser) => {
    const visit = await Visit.as(browser, "ann");
    await visit.go("/", ".tiles");
    await visit.button("90 days").click();
    await visit.page.waitForURL(`${origin}/?range=90d`);
    await visit.page.waitForFunction(() => document.querySelectorAll('table[aria-label="Spending"] tbody tr').length === 90);
    const pressed = await visit.page.locator("[aria-pressed=true]").allInnerTexts();
    const { tables } = await shown(visit, "/?range=1h");
    return { pressed, hour: tables.Spending.length, errors: visit.errors.filter((error) => error.startsWith("error:") && !/status of 40\d/.test(error)), crashes: visit.crashes, violations: visit.violations };
  },
};

await suite(CASES);
