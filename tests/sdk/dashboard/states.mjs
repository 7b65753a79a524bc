// Leads pages of the dashboard into states that they are in for a while.

// Asks an agent in the chat, and waits until its answer has `text`.
export async function asks(visit, agent, text) {
  await visit.go(`/chat?agent=${agent}`, "#question");
  await visit.page.waitForFunction((agent) => document.querySelector("select")?.value === agent, agent);
  await visit.page.fill("#question", "Count to six");
  await visit.page.keyboard.press("Enter");
  await visit.page.locator(".chat-answer", { hasText: text }).waitFor({ timeout: 40_000 });
}
