/**
 * Holds one conversation: orders answers, follows them, and follows them again after the connection broke or the tab was
 * hidden. To leave a page ends the connection alone; the run goes on.
 */
import { Chat } from "@ai-sdk/react";
import { randomId } from "../../api/client";
import { ApiError, toApiError, unreachable } from "../../api/problem";
import type { SessionOptions } from "./access";
import { type Link, type Order, type Report, type SessionView, Backoff, outcomeOf } from "./link";
import { type ChatMessage, hasEnded, mergeTail } from "./message";
import { Observable } from "./observable";
import { ProgressText } from "./progress";
import { place } from "./transport";

const STOP_MS = 2_000;

/** One conversation. */
export class ChatSession {
  readonly chat: Chat<ChatMessage>;
  readonly view = new Observable<SessionView>({ link: { kind: "idle" }, progress: { text: "", missed: 0 } });
  readonly #options: SessionOptions;
  readonly #backoff = new Backoff();
  readonly #progress = new ProgressText((progress) => this.view.update({ progress }));
  #tab: "shown" | "hidden" | "closed" = "shown";
  #report: Report | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.chat = new Chat<ChatMessage>({
      id: options.thread,
      messages: options.messages,
      transport: options.transport(() => this.#answered()),
      onError: (error) => void (this.#report !== null && (this.#report.error = error)),
      onFinish: ({ isAbort }) => void (this.#report !== null && (this.#report.ending = isAbort ? "aborted" : "finished")),
      onData: (part) => this.#progress.read(part),
    });
  }

  /** Asks a question. Returns whether it was taken: while an answer is being given, none is. */
  send(text: string, agent: string | null, gatewayAgent: string | null = null): boolean {
    if (!this.#isIdle()) return false;
    void this.#submit({ kind: "send", id: randomId("msg-"), text, agent, gatewayAgent });
    return true;
  }

  /** Asks the last question anew. Each call is another run, but none is ordered while one is active. */
  regenerate(agent: string | null, gatewayAgent: string | null = null): void {
    const answer = this.chat.messages.at(-1);
    if (!this.#isIdle() || answer?.role !== "assistant") return;
    const requestId = randomId("request-");
    void this.#submit({ kind: "regenerate", answerId: answer.id, requestId, agent, gatewayAgent });
  }

  /** Repeats what was refused or broke off. A repeated order is the same run. */
  retry(): void {
    const link = this.#link;
    if (this.#report === null && link.kind === "refused" && link.order !== null) void this.#submit(link.order);
    else this.resume();
  }

  /** Gives up what was refused. Returns the question, if it was one. */
  takeBack(): string {
    const link = this.#link;
    if (link.kind !== "refused" || this.#report !== null) return "";
    this.#set({ kind: "idle" });
    if (link.order?.kind !== "send") return "";
    const { id, text } = link.order;
    this.chat.messages = this.chat.messages.filter((message) => message.id !== id);
    return text;
  }

  /** Follows the answer that is being given, from its beginning. */
  resume(): void {
    if (this.#report !== null || this.#tab === "closed") return;
    clearTimeout(this.#timer);
    if (this.#tab === "hidden") this.#set({ kind: "paused" });
    else void this.#run(null, () => this.chat.resumeStream());
  }

  /** Asks for the end of the run. The stream then says how it ended; if it does not, it is read again. */
  async stop(): Promise<void> {
    const link = this.#link;
    if (link.kind !== "live" && link.kind !== "lost") return;
    clearTimeout(this.#timer);
    this.#set({ kind: "stopping" });
    try {
      await this.#options.access.stop();
    } catch (thrown) {
      if (this.#link.kind === "stopping") this.#set(this.#report === null ? { kind: "idle" } : { kind: "live" });
      this.resume();
      throw thrown;
    }
    if (this.#report === null) this.resume();
    else this.#timer = setTimeout(() => void (this.#link.kind === "stopping" && this.chat.stop()), STOP_MS);
  }

  /** Closes the connection while the tab is hidden: browsers have few for all tabs. */
  hide(): void {
    if (this.#tab === "shown") this.#tab = "hidden";
    // An order without an answer may not have reached the server yet.
    if (this.#report !== null && this.#report.answeredAt !== null) void this.chat.stop();
  }

  /** Continues what `hide` closed. */
  show(): void {
    if (this.#tab === "hidden") this.#tab = "shown";
    if (this.#link.kind === "paused") this.resume();
  }

  /** Ends the connection, and leaves the run alone. */
  close(): void {
    this.#tab = "closed";
    clearTimeout(this.#timer);
    void this.chat.stop();
  }

  async #submit(order: Order): Promise<void> {
    const shown = this.chat.messages;
    await this.#run(order, () => place(this.chat, order));
    // A regeneration that was refused replaces nothing.
    if (this.#link.kind === "refused" && order.kind === "regenerate") this.chat.messages = shown;
  }

  async #run(order: Order | null, request: () => Promise<void>): Promise<void> {
    const report: Report = { ending: "none", error: null, answeredAt: null };
    this.#report = report;
    this.#progress.clear();
    if (this.#link.kind !== "stopping") this.#set({ kind: order === null ? "connecting" : "live" });
    await request();
    this.#report = null;
    const isSignedOut = report.error instanceof ApiError && report.error.status === 401;
    if (isSignedOut && order?.kind === "send") this.#options.onUnsent(order.text);
    if (this.#tab !== "closed") await this.#settle(report, order);
  }

  async #settle(report: Report, order: Order | null): Promise<void> {
    const last = this.chat.messages.at(-1);
    const outcome = outcomeOf(report, order === null ? "resume" : "order", last);
    switch (outcome.kind) {
      case "ended":
        return this.#end();
      case "aborted":
        return this.resume();
      case "silent":
        return last === undefined || hasEnded(last) ? this.#end() : await this.#readStored();
      case "refused":
        // An order that got an answer is stored: what failed is to read it.
        return this.#set({ kind: "refused", error: outcome.error, order: report.answeredAt === null ? order : null });
      case "lost":
        return this.#lose(outcome.error, report.answeredAt);
    }
  }

  async #readStored(): Promise<void> {
    try {
      const stored = await this.#options.access.read();
      if (this.#tab === "closed") return;
      this.chat.messages = mergeTail(this.chat.messages, stored);
      if (hasEnded(stored.at(-1))) this.#end();
      else this.#lose(unreachable(), null);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.isTransient) this.#lose(error, null);
      else this.#set({ kind: "refused", error, order: null });
    }
  }

  #lose(error: ApiError, answeredAt: number | null): void {
    const wait = this.#backoff.next(answeredAt, Date.now());
    this.#set({ kind: "lost", retryAt: Date.now() + wait, error });
    this.#timer = setTimeout(() => this.resume(), wait);
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#backoff.reset();
    this.#set({ kind: "idle" });
    this.#options.onEnded();
  }

  #answered(): void {
    if (this.#report !== null) this.#report.answeredAt = Date.now();
    if (this.#link.kind === "connecting") this.#set({ kind: "live" });
    if (this.#tab === "hidden") setTimeout(() => this.hide());
  }

  #isIdle(): boolean {
    return this.#link.kind === "idle" && this.#report === null;
  }

  get #link(): Link {
    return this.view.get().link;
  }

  #set(link: Link): void {
    if (this.#tab !== "closed") this.view.update({ link });
  }
}
