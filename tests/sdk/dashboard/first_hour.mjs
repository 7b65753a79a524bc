// Opens the dashboard with the link that a terminal shows, and looks for a run and its commits as a person does.
import { input, suite, Visit } from "./driver.mjs";

const { link, run } = input;

const CASES = {
  signed_in: async (browser) => {
    const visit = await Visit.open(browser);
    await visit.page.goto(link);
    await visit.page.waitForSelector(".frame");
    const who = await visit.page.locator(".identity").innerText();
    await visit.go("/sandbox");
    await visit.page.locator(`#main a[href$="/sandbox/${run}"]`).first().click();
    await visit.page.waitForURL(`**/sandbox/${run}`);
    await visit.go(`/sandbox/${run}?tab=git`);
    await visit.says("Pull request");
    return { who, commits: await visit.text(), crashes: visit.crashes, violations: visit.violations };
  },
};

await suite(CASES);
