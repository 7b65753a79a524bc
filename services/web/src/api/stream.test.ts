/** Tests that a stream resumes behind its last event, waits while hidden, and ends when the server says so. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { SseParser } from "./sse";
import { LiveStream, type StreamState } from "./stream";

type Answer = { status?: number; chunks?: string[]; stays?: boolean; fails?: boolean; hangs?: boolean; retryAfter?: number };

/** Server with prepared answers, and a document that can be hidden. */
class World {
  readonly requests: Headers[] = [];
  readonly states: StreamState["kind"][] = [];
  readonly items: unknown[] = [];
  readonly document = Object.assign(new EventTarget(), { hidden: false });
  readonly #answers: Answer[];
  #connection: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor(context: TestContext, answers: Answer[]) {
    this.#answers = answers;
    Object.assign(globalThis, { document: this.document });
    context.mock.method(globalThis, "fetch", (_: string, init: RequestInit) => this.#answer(init));
    context.mock.timers.enable({ apis: ["setTimeout"] });
  }

  open(isLast?: (item: unknown) => boolean): LiveStream<unknown> {
    const onItems = (items: unknown[]) => void this.items.push(...items);
    const onState = (state: StreamState) => void this.states.push(state.kind);
    return new LiveStream<unknown>({ path: "/stream", onItems, onState, ...(isLast === undefined ? {} : { isLast }) }).open();
  }

  /** Sends a piece on the connection that stays. */
  send(chunk: string): void {
    this.#connection?.enqueue(new TextEncoder().encode(chunk));
  }

  hide(hidden: boolean): void {
    this.document.hidden = hidden;
    this.document.dispatchEvent(new Event("visibilitychange"));
  }

  #answer(init: RequestInit): Promise<Response> {
    this.requests.push(new Headers(init.headers));
    const { status = 200, chunks = [], stays = false, fails = false, hangs = false, retryAfter } = this.#answers.shift() ?? { status: 204 };
    if (fails) return Promise.reject(new TypeError("fetch failed"));
    if (hangs) {
      return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError"))));
    }
    const headers: Record<string, string> = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
        if (stays) this.#connection = controller;
        else controller.close();
        init.signal?.addEventListener("abort", () => stays && controller.error(new DOMException("", "AbortError")));
      },
    });
    return Promise.resolve(new Response(status === 204 ? null : body, { status, headers }));
  }
}

const settle = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((done) => setImmediate(done));
};

test("a broken connection resumes behind the last event", async (context) => {
  const world = new World(context, [{ chunks: ['id: 7\ndata: {"n":7}\n\n', 'data: {"live":1}\n\n'] }, { status: 204 }]);
  world.open();
  await settle();
  assert.deepEqual(world.states, ["connecting", "open", "lost"]);
  context.mock.timers.tick(1_000);
  await settle();
  assert.equal(world.requests[1]?.get("last-event-id"), "7");
  assert.deepEqual(world.items, [{ n: 7 }, { live: 1 }]);
  assert.deepEqual(world.states.slice(3), ["connecting", "ended"]);
});

test("a silent connection is given up, and one with heartbeats is not", async (context) => {
  const world = new World(context, [{ chunks: ['id: 7\ndata: {"n":7}\n\n'], stays: true }, { hangs: true }, { status: 204 }]);
  world.open();
  await settle();
  context.mock.timers.tick(40_000);
  await settle();
  world.send(": heartbeat\n\n");
  await settle();
  context.mock.timers.tick(40_000);
  await settle();
  assert.deepEqual(world.states, ["connecting", "open"], "the heartbeat was a sign of life");
  context.mock.timers.tick(5_000);
  await settle();
  assert.deepEqual(world.states.slice(2), ["lost"]);
  context.mock.timers.tick(1_000);
  await settle();
  assert.equal(world.requests[1]?.get("last-event-id"), "7");
  assert.deepEqual(world.states.slice(3), ["connecting"], "no answer yet");
  context.mock.timers.tick(45_000);
  await settle();
  context.mock.timers.tick(2_000);
  await settle();
  assert.deepEqual(world.states.slice(4), ["lost", "connecting", "ended"]);
});

test("waits grow while the server is away", async (context) => {
  const world = new World(context, [{ fails: true }, { fails: true }, { status: 204 }]);
  world.open();
  await settle();
  context.mock.timers.tick(1_000);
  await settle();
  context.mock.timers.tick(1_999);
  await settle();
  assert.equal(world.requests.length, 2);
  context.mock.timers.tick(1);
  await settle();
  assert.equal(world.requests.length, 3);
});

test("a server that is busy is asked again when it says", async (context) => {
  const world = new World(context, [{ status: 503, retryAfter: 45 }, { status: 204 }]);
  world.open();
  await settle();
  context.mock.timers.tick(44_999);
  await settle();
  assert.equal(world.requests.length, 1);
  context.mock.timers.tick(1);
  await settle();
  assert.equal(world.requests.length, 2);
});

test("the end of the connection after the last event is the end", async (context) => {
  const world = new World(context, [{ chunks: ['id: 1\ndata: {"type":"done"}\n\n'] }]);
  world.open((item) => Reflect.get(Object(item), "type") === "done");
  await settle();
  assert.deepEqual(world.states, ["connecting", "open", "ended"]);
});

test("a hidden tab holds no stream, and resumes when it is shown", async (context) => {
  const world = new World(context, [{ chunks: ["id: 3\ndata: {}\n\n"], stays: true }, { stays: true }]);
  const stream = world.open();
  await settle();
  world.hide(true);
  await settle();
  assert.deepEqual(world.states, ["connecting", "open", "paused"]);
  world.hide(false);
  await settle();
  assert.equal(world.requests[1]?.get("last-event-id"), "3");
  stream.close();
});

test("a new stream of the tab ends the one before", async (context) => {
  const world = new World(context, [{ stays: true }, { stays: true }]);
  world.open();
  await settle();
  const second = world.open();
  await settle();
  world.hide(true);
  assert.deepEqual(world.states, ["connecting", "open", "connecting", "open", "paused"]);
  second.close();
});

test("a refusal that no wait would change is shown", async (context) => {
  const world = new World(context, [{ status: 404 }]);
  world.open();
  await settle();
  assert.deepEqual(world.states, ["connecting", "refused"]);
});

test("events survive any division into pieces", () => {
  const stream = 'id: 3\ndata: {"a":1}\n\n: keep-alive\n\ndata: one\ndata: two\n\nid: 4\r\ndata: x\r\n\r\n';
  const whole = [
    { id: "3", data: '{"a":1}' },
    { id: null, data: "one\ntwo" },
    { id: "4", data: "x" },
  ];
  for (let at = 0; at <= stream.length; at += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.feed(stream.slice(0, at)), ...parser.feed(stream.slice(at))], whole, `divided at ${at}`);
  }
});

test("an event that is not complete is not delivered", () => {
  assert.deepEqual(new SseParser().feed("data: half"), []);
});
