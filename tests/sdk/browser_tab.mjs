// Bundles the page of tests/sdk/browser_chat, opens it in Chromium, and uses it as a person does: by what is shown.
import { chmodSync, mkdtempSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: run this with scripts/browser.sh node");
const installed = createRequire(join(process.env.PACKAGES, "package.json"));
const source = fileURLToPath(new URL("browser_chat/", import.meta.url));
const PATIENCE = 30_000;
// For a host without a display. Nothing is asked of the browser's maker.
const SWITCHES = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

// Writes the page's files into a folder.
export async function bundle(folder) {
  await installed("esbuild").build({
    entryPoints: [join(source, "main.jsx")],
    nodePaths: [join(process.env.PACKAGES, "node_modules")],
    outfile: join(folder, "page.js"),
    bundle: true,
    format: "esm",
    jsx: "automatic",
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  await copyFile(join(source, "index.html"), join(folder, "index.html"));
}

// Starts Chromium with a new profile, as a user that is not root and in its own sandbox. It ends with this process, whatever kills it: its pipe is closed then.
export function launch(switches = []) {
  const { chromium } = installed("playwright-core");
  // Chromium is another user, and writes what a page has it save.
  const downloadsPath = mkdtempSync(join(tmpdir(), "downloads-"));
  chmodSync(downloadsPath, 0o1777);
  const args = [...SWITCHES, ...switches];
  return chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, chromiumSandbox: true, downloadsPath, args });
}

// Keeps what each load of a page has shown: the texts of the last answer, and the status.
function keepShown() {
  window.shown = { texts: [], statuses: [] };
  const keep = (list, value) => value && value !== list.at(-1)?.value && list.push({ value, at: performance.now() });
  const look = () => {
    const texts = document.querySelectorAll("#messages > li:last-child[data-role=assistant] > [data-part=text]");
    keep(window.shown.texts, [...texts].at(-1)?.textContent);
    keep(window.shown.statuses, document.querySelector("#status")?.textContent);
  };
  new MutationObserver(look).observe(document, { childList: true, characterData: true, subtree: true });
}

// Returns the status, the error and the messages that are in the document.
function read() {
  const json = (element) => (element.textContent ? JSON.parse(element.textContent) : null);
  const part = (element) => {
    if (element.dataset.part === "text") return ["text", element.textContent];
    const [input, output] = [...element.querySelectorAll("pre")].map(json);
    return [element.querySelector("summary").textContent, element.dataset.call, element.dataset.state, input, output];
  };
  const message = (item) => {
    const parts = item.querySelectorAll(":scope > [data-part=text], :scope > [data-part=tool]");
    return [item.id, item.dataset.role, [...parts].map(part)];
  };
  return {
    status: document.querySelector("#status")?.textContent ?? null,
    error: document.querySelector("[role=alert]")?.textContent ?? null,
    messages: [...document.querySelectorAll("#messages > li")].map(message),
  };
}

// A tab with the page: one thread, and one agent.
export class Tab {
  static async open(context, origin, thread, agent) {
    const tab = new Tab();
    tab.page = await context.newPage();
    tab.page.setDefaultTimeout(PATIENCE);
    await tab.page.addInitScript(keepShown);
    await tab.page.goto(`${origin}/?${new URLSearchParams({ thread, agent })}`);
    return tab;
  }

  shows = (selector) => this.page.waitForSelector(selector);
  read = () => this.page.evaluate(read);
  shown = () => this.page.evaluate(() => window.shown);
  click = (selector) => this.page.click(selector);

  async signIn(token) {
    await this.page.fill("#sign-in input", token);
    await this.page.click("#sign-in button");
  }

  async send(question) {
    await this.page.fill("#ask input", question);
    await this.page.click("#ask button");
  }

  // Waits until the last text of the last answer has this word.
  async says(word) {
    const last = "#messages > li:last-child[data-role=assistant] > [data-part=text]";
    await this.page.waitForFunction(([last, word]) => {
      return [...document.querySelectorAll(last)].at(-1)?.textContent.includes(word);
    }, [last, word]);
  }

  // Waits until so many messages are shown, and the last of them is whole. Returns what is shown.
  async rests(messages) {
    await this.page.waitForFunction((count) => {
      const status = document.querySelector("#status")?.textContent;
      return document.querySelectorAll("#messages > li").length === count && ["ready", "error"].includes(status);
    }, messages);
    return this.read();
  }

  // Waits until a message is shown that something went wrong. Returns what is shown.
  async fails() {
    await this.shows("[role=alert]");
    return this.read();
  }

  async reload() {
    await this.page.reload();
    await this.shows("#status");
  }
}
