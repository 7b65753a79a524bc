// Follows a run in the dashboard while its network, the proxy and `sluice up` fail.
import { createInterface } from "node:readline";
import { api, ended, input, order, Relay, running, suite, until, Visit } from "./driver.mjs";

const relay = await Relay.start(input.home);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Asks the test for a fault, or for ticks of the agent, and waits until it has happened.
async function cause(fault) {
  console.log(JSON.stringify({ ask: fault }));
  await answers.next();
}

const shown = (visit, tick) => visit.page.locator(".event", { hasText: `tick-${tick} ` }).first().waitFor({ timeout: 60_000 });
const lost = (visit) => visit.page.locator(".live-lost").waitFor();
// Ids of what is shown: the numbers of the events, in their order.
const numbers = async (visit) => (await visit.page.locator(".event .event-seq").allInnerTexts()).map(Number);

async function stored(run) {
  const { text } = await api("ann", "GET", `/runs/${run}/events`);
  return text.trim().split("\n").map((line) => JSON.parse(line)).map(({ seq, type }) => [seq, type]);
}

const CASES = {
  each_once: async (browser) => {
    await order("ann", "ticks", "test:ticks");
    await running("ann", "ticks");
    const visit = await Visit.as(browser, "ann", { home: input.home });
    await visit.go("/sandbox/ticks?tab=events", ".event");
    await cause("tick to 2");
    await shown(visit, 2);
    // What is open already stays open in a Chromium that is offline.
    await visit.context.setOffline(true);
    relay.cut();
    await lost(visit);
    await cause("tick to 4");
    relay.mend();
    await visit.context.setOffline(false);
    await cause("tick to 5");
    await shown(visit, 5);
    await cause("kill the proxy");
    await cause("tick to 7");
    await shown(visit, 7);
    await cause("kill sluice up");
    await lost(visit);
    await cause("release 10");
    await cause("start sluice up");
    await cause("tick to 14");
    await shown(visit, 14);
    const state = await ended("ann", "ticks");
    await visit.page.locator(".event-end").first().waitFor();
    const events = await stored("ticks");
    const seen = await until(() => numbers(visit), (list) => list.at(-1) === events.at(-1)[0], "the last event");
    return { state, seen, events, streams: visit.requests.filter((request) => request.endsWith("/events")).length, crashes: visit.crashes };
  },
};

await suite(CASES);
process.stdin.destroy();
